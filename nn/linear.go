package nn

// LinearConfig holds the choices of a Linear layer.
type LinearConfig struct {
	NoBias bool
	Cut    Cut // over partners; the zero value is none
}

// Linear is a fully connected layer: x w^T + b for x of rows x in.
type Linear struct {
	Weight *Param // out x in
	Bias   *Param // out; nil without
	Cut    Cut    // over partners, as Weight is
}

// NewLinear returns a layer whose parameters are name.weight and name.bias. It
// starts as PyTorch's does: both uniform within 1/sqrt(in).
func NewLinear(name string, in, out int, c LinearConfig) *Linear {
	if in < 1 || out < 1 {
		fail(name, "linear", "%d inputs and %d outputs: both must be at least 1", in, out)
	}
	var weight, bias *Part
	if c.Cut.Inputs {
		weight = c.Cut.part(name, 1, out, in)
	} else {
		weight, bias = c.Cut.part(name, 0, out, in), c.Cut.part(name, 0, out)
	}
	l := &Linear{Weight: cutParam(weight, Param{Name: name + ".weight", Decay: true, Init: UniformFan(in)}, out, in), Cut: c.Cut}
	if !c.NoBias {
		l.Bias = cutParam(bias, Param{Name: name + ".bias", Init: UniformFan(in)}, out)
	}
	return l
}

// Forward applies the layer; see Tape.ColumnLinear and Tape.RowLinear where it
// is cut.
func (l *Linear) Forward(t *Tape, x *Var) *Var {
	switch {
	case l.Cut.IsWhole():
		return t.Linear(x, l.Weight, l.Bias)
	case l.Cut.Inputs:
		return t.RowLinear(x, l.Weight, l.Bias, l.Cut.Partners)
	}
	return t.ColumnLinear(x, l.Weight, l.Bias, l.Cut.Partners)
}

// OutputPart says which features of the output this rank has, where partners have
// the others; nil: all of them.
func (l *Linear) OutputPart() *Part {
	if l.Cut.Inputs {
		return nil
	}
	return l.Weight.Part
}

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
