package nn

// ConvConfig holds the choices of a Conv2d layer.
type ConvConfig struct {
	Stride   Extent // the zero value is 1 x 1
	Padding  Extent
	Dilation Extent // from one tap to the next; the zero value is 1 x 1
	// Groups cuts the input channels into as many runs, each of which makes a
	// share of the output channels; 0 is 1. As many groups as input channels are a
	// depthwise convolution.
	Groups int
	Bias   bool
}

// Conv2d is a 2-d convolution of images.
type Conv2d struct {
	Weight *Param // out x in/groups x height x width
	Bias   *Param // out; nil without
	Config ConvConfig
}

// NewConv2d returns a layer whose parameters are name.weight and name.bias. It
// starts as PyTorch's does: both uniform within 1/sqrt(in/groups x height x width). A
// model that wants another start sets Weight.Init.
func NewConv2d(name string, in, out int, kernel Extent, c ConvConfig) *Conv2d {
	if in < 1 || out < 1 || kernel.H < 1 || kernel.W < 1 {
		fail(name, "conv2d", "%d to %d channels with a kernel of %d x %d: all must be at least 1", in, out, kernel.H, kernel.W)
	}
	groups := max(1, c.Groups)
	if c.Groups < 0 || in%groups != 0 || out%groups != 0 {
		fail(name, "conv2d", "%d groups of %d to %d channels: the groups must divide both", c.Groups, in, out)
	}
	init := UniformFan(in / groups * kernel.H * kernel.W)
	l := &Conv2d{Config: c}
	l.Weight = &Param{Name: name + ".weight", Shape: []int{out, in / groups, kernel.H, kernel.W}, Decay: true, Init: init}
	if c.Bias {
		l.Bias = &Param{Name: name + ".bias", Shape: []int{out}, Init: init}
	}
	return l
}

// Forward applies the layer.
func (l *Conv2d) Forward(t *Tape, x *Var) *Var {
	return t.Conv2d(x, l.Weight, l.Bias, l.Config)
}

// Params lists weight and bias.
func (l *Conv2d) Params() []*Param { return present(l.Weight, l.Bias) }

// State lists nothing.
func (l *Conv2d) State() []State { return nil }
