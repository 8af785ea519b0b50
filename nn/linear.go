package nn

// LinearConfig holds the choices of a Linear layer.
type LinearConfig struct {
	NoBias bool
}

// Linear is a fully connected layer: x w^T + b for x of rows x in.
type Linear struct {
	Weight *Param // out x in
	Bias   *Param // out; nil without
}

// NewLinear returns a layer whose parameters are name.weight and name.bias. It
// starts as PyTorch's does: both uniform within 1/sqrt(in).
func NewLinear(name string, in, out int, c LinearConfig) *Linear {
	if in < 1 || out < 1 {
		fail(name, "linear", "%d inputs and %d outputs: both must be at least 1", in, out)
	}
	l := &Linear{Weight: &Param{Name: name + ".weight", Shape: []int{out, in}, Decay: true, Init: UniformFan(in)}}
	if !c.NoBias {
		l.Bias = &Param{Name: name + ".bias", Shape: []int{out}, Init: UniformFan(in)}
	}
	return l
}

// Forward applies the layer.
func (l *Linear) Forward(t *Tape, x *Var) *Var { return t.Linear(x, l.Weight, l.Bias) }

// Params lists weight and bias.
func (l *Linear) Params() []*Param { return present(l.Weight, l.Bias) }

// State lists nothing.
func (l *Linear) State() []State { return nil }

// present drops the parameters that a layer does not have.
func present(params ...*Param) []*Param {
	out := params[:0]
	for _, p := range params {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}
