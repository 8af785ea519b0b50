package nn

import "github.com/gradfusion/gradfusion/device"

// stateless is embedded by layers that have neither parameters nor state.
type stateless struct{}

// Params lists nothing.
func (stateless) Params() []*Param { return nil }

// State lists nothing.
func (stateless) State() []State { return nil }

// ReLU is max(x, 0).
type ReLU struct{ stateless }

// Forward applies the layer.
func (ReLU) Forward(t *Tape, x *Var) *Var { return t.Activate(device.ReLU, x) }

// Tanh is the hyperbolic tangent.
type Tanh struct{ stateless }

// Forward applies the layer.
func (Tanh) Forward(t *Tape, x *Var) *Var { return t.Activate(device.Tanh, x) }

// Sigmoid is 1 / (1 + exp(-x)).
type Sigmoid struct{ stateless }

// Forward applies the layer.
func (Sigmoid) Forward(t *Tape, x *Var) *Var { return t.Activate(device.Sigmoid, x) }

// GELU is x times the normal distribution's share below x.
type GELU struct {
	stateless
	Tanh bool // PyTorch's approximate="tanh", as GPT-2 has it
}

// Forward applies the layer.
func (l GELU) Forward(t *Tape, x *Var) *Var {
	if l.Tanh {
		return t.Activate(device.GELUTanh, x)
	}
	return t.Activate(device.GELU, x)
}

// SiLU is x times the sigmoid of x.
type SiLU struct{ stateless }

// Forward applies the layer.
func (SiLU) Forward(t *Tape, x *Var) *Var { return t.Activate(device.SiLU, x) }

// activationOf returns the function of a layer that is nothing else.
func activationOf(l Layer) device.Activation {
	switch l.(type) {
	case ReLU:
		return device.ReLU
	case Tanh:
		return device.Tanh
	case Sigmoid:
		return device.Sigmoid
	}
	return device.Identity
}
