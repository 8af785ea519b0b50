package nn

// LayerNormConfig holds the choices of a LayerNorm layer.
type LayerNormConfig struct {
	Epsilon float32 // 0 is 1e-5
}

// LayerNorm normalises each row or token over its elements; see Tape.LayerNorm.
type LayerNorm struct {
	Scale, Shift *Param
	Epsilon      float32
}

// NewLayerNorm returns a layer whose parameters are name.weight (the scale,
// ones at first) and name.bias (the shift, zeros).
func NewLayerNorm(name string, width int, c LayerNormConfig) *LayerNorm {
	if width < 1 {
		fail(name, "layer norm", "a width of %d: must be at least 1", width)
	}
	if c.Epsilon == 0 {
		c.Epsilon = 1e-5
	}
	return &LayerNorm{
		Scale:   &Param{Name: name + ".weight", Shape: []int{width}, Init: Init{Value: 1}},
		Shift:   &Param{Name: name + ".bias", Shape: []int{width}},
		Epsilon: c.Epsilon,
	}
}

// Forward applies the layer.
func (l *LayerNorm) Forward(t *Tape, x *Var) *Var {
	return t.LayerNorm(x, l.Scale, l.Shift, l.Epsilon)
}

// Params lists scale and shift.
func (l *LayerNorm) Params() []*Param { return []*Param{l.Scale, l.Shift} }

// State lists nothing.
func (l *LayerNorm) State() []State { return nil }
