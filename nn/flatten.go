package nn

// Flatten makes images a matrix of images x features, in channel, row, column
// order.
type Flatten struct {
	stateless
	Name string // for errors
}

// Forward applies the layer.
func (l Flatten) Forward(t *Tape, x *Var) *Var { return t.Flatten(l.Name, x) }
