package nn

// Dropout drops elements with probability P in training; see Tape.Dropout. Its
// name is part of the seed of its masks: give each layer its own.
type Dropout struct {
	stateless
	Name string
	P    float32
}

// Forward applies the layer.
func (l Dropout) Forward(t *Tape, x *Var) *Var { return t.Dropout(l.Name, x, l.P) }
