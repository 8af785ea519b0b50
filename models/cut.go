package models

import "fmt"

// Cuts reports whether the layers of the model of that name can be cut over
// partners (tensor parallelism).
func Cuts(name string) bool { return name == "mlp" || name == "gpt" }

// count is how many there are of what partners share.
type count struct {
	n    int
	what string
}

// enough refuses more partners than there is something to share.
func (c Config) enough(have count) error {
	if c.Partners == nil || have.n >= c.Partners.Size() {
		return nil
	}
	return fmt.Errorf("%d %s are too few for %d ranks that share them", have.n, have.what, c.Partners.Size())
}
