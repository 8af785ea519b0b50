package nn

// Dropout drops elements with probability P in training; see Tape.Dropout. Its
// name is part of the seed of its masks: give each layer its own.
type Dropout struct {
	stateless
	Name string
	P    float32
	Part *Part // of the features that the input has, where partners have the others; nil: all
}

// Forward applies the layer.
func (l Dropout) Forward(t *Tape, x *Var) *Var {
	if l.Part != nil {
		return t.CutDropout(l.Name, x, l.P, l.Part)
	}
	return t.Dropout(l.Name, x, l.P)
}
