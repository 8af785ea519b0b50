package nn

import "github.com/gradfusion/gradfusion/device"

// BatchNormConfig holds the choices of a BatchNorm2d layer.
type BatchNormConfig struct {
	Epsilon  float32 // 0 is 1e-5
	Momentum float32 // of the running statistics, once a step; 0 is 0.1
}

// BatchNorm2d normalises each channel of images over a micro-batch, or each
// column of a matrix; see Tape.BatchNorm.
type BatchNorm2d struct {
	Norm Norm
}

// NewBatchNorm2d returns a layer whose parameters are name.weight (the scale,
// ones at first) and name.bias (the shift, zeros) and whose states are
// name.running_mean and name.running_var.
func NewBatchNorm2d(name string, channels int, c BatchNormConfig) *BatchNorm2d {
	if channels < 1 {
		fail(name, "batch norm", "%d channels: must be at least 1", channels)
	}
	if c.Epsilon == 0 {
		c.Epsilon = 1e-5
	}
	if c.Momentum == 0 {
		c.Momentum = 0.1
	}
	return &BatchNorm2d{Norm{
		Scale:   &Param{Name: name + ".weight", Shape: []int{channels}, Init: Init{Value: 1}},
		Shift:   &Param{Name: name + ".bias", Shape: []int{channels}},
		Running: &Running{Name: name, Channels: channels, Momentum: c.Momentum},
		Epsilon: c.Epsilon,
	}}
}

// Forward applies the layer.
func (l *BatchNorm2d) Forward(t *Tape, x *Var) *Var { return l.Fused(t, x, nil, device.Identity) }

// Fused applies the layer, adds residual unless it is nil, and applies act
// (Identity or ReLU), all in one pass over memory.
func (l *BatchNorm2d) Fused(t *Tape, x, residual *Var, act device.Activation) *Var {
	return t.BatchNorm(x, l.Norm, residual, act)
}

// FusedOver is Fused for a residual that nobody else reads: where its memory can
// become that of the result, it does.
func (l *BatchNorm2d) FusedOver(t *Tape, x, residual *Var, act device.Activation) *Var {
	return t.batchNorm(x, l.Norm, residual, act, true)
}

// Params lists scale and shift.
func (l *BatchNorm2d) Params() []*Param { return []*Param{l.Norm.Scale, l.Norm.Shift} }

// State lists the running mean and variance.
func (l *BatchNorm2d) State() []State {
	r := l.Norm.Running
	return []State{
		{Name: r.Name + ".running_mean", Buf: r.Mean, Running: r},
		{Name: r.Name + ".running_var", Buf: r.Var, Running: r},
	}
}
