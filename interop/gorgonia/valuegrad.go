package gorgonia

import (
	"fmt"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// ValueGrads returns the parameters as what Gorgonia's solvers take: Value is
// the master and Grad the gradient of the parameter's first use, both in the
// parameter's own memory, wherever that is at the time of the call. Grad is an
// error while there is no gradient. Use them on the parameters' goroutine.
func ValueGrads(params []*nn.Param) []G.ValueGrad {
	out := make([]G.ValueGrad, len(params))
	for i, p := range params {
		out[i] = &valueGrad{param: p, gradient: func() (device.Buf, bool) { return p.Grad(0) }}
	}
	return out
}

// valueGrad is a parameter as Gorgonia sees it. Headers are kept as long as the
// memory stays where it is.
type valueGrad struct {
	param    *nn.Param
	gradient func() (device.Buf, bool)
	value    header
	grad     header
}

var (
	_ G.ValueGrad = (*valueGrad)(nil)
	_ G.Namer     = (*valueGrad)(nil)
)

func (v *valueGrad) Name() string { return v.param.Name }

func (v *valueGrad) Value() G.Value { return v.value.over(v.param.Value, v.param.Shape) }

func (v *valueGrad) Grad() (G.Value, error) {
	g, ok := v.gradient()
	if !ok {
		return nil, fmt.Errorf("parameter %s has no gradient", v.param.Name)
	}
	return v.grad.over(g, v.param.Shape), nil
}

// header is a tensor over memory that moves now and then.
type header struct {
	dense *tensor.Dense
	at    *byte
}

func (h *header) over(b device.Buf, shape []int) *tensor.Dense {
	if at := unsafe.SliceData(b.Bytes()); h.dense == nil || h.at != at {
		h.at = at
		h.dense = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b.F32()))
	}
	return h.dense
}

// memory returns what a Gorgonia value holds as a buffer that shares it.
func memory(v G.Value) (device.Buf, error) {
	d, ok := v.(*tensor.Dense)
	if !ok {
		return device.Buf{}, fmt.Errorf("is a %T, want a *tensor.Dense", v)
	}
	if d.Dtype() != tensor.Float32 {
		return device.Buf{}, fmt.Errorf("holds %s, want float32", d.Dtype())
	}
	if d.RequiresIterator() || d.IsMasked() {
		return device.Buf{}, fmt.Errorf("is a view or masked, want contiguous memory of its own")
	}
	if d.IsScalar() {
		return device.Buf{}, fmt.Errorf("is a scalar, want a tensor: give it the shape (1)")
	}
	return device.FromF32(d.Float32s()), nil
}
