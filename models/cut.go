package models

import "fmt"

// Cuts reports whether the layers of the model of that name can be cut over
// partners (tensor parallelism).
func Cuts(name string) bool { return name == "mlp" || name == "gpt" }

// Shares returns an error unless so many partners can share the layers of the
// model: each has at least one of what they share. What is not known yet, as the
// vocabulary, is 0.
func (c Config) Shares(partners int) error {
	if partners == 1 {
		return nil
	}
	if !Cuts(c.Name) {
		return fmt.Errorf("the layers of %s cannot be cut over ranks; those of mlp and gpt can", c.Name)
	}
	c = c.WithDefaults()
	var err error
	enough := func(n int, what string) {
		if err == nil && n > 0 && n < partners {
			err = fmt.Errorf("%d %s are too few for %d ranks that share them", n, what, partners)
		}
	}
	if c.Name == "gpt" {
		enough(c.Heads, "heads")
		enough(c.Vocabulary, "tokens of the vocabulary")
		return err
	}
	hidden := c.hiddenLayers()
	for i := 0; i < len(hidden); i += 2 { // the inputs of the layer after each are cut with its outputs
		enough(hidden[i], fmt.Sprintf("features of hidden layer %d", i+1))
	}
	if len(hidden)%2 == 0 {
		enough(c.Classes, "classes")
	}
	return err
}
