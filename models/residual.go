package models

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// residual is relu(norm(conv(... relu(norm(conv(x))))) + shortcut(x)).
type residual struct {
	name  string
	convs []*nn.Conv2d
	norms []*nn.BatchNorm2d

	project *nn.Conv2d      // shortcut B; nil when the shape stays or with A
	norm    *nn.BatchNorm2d // of project
	stride  int
	out     int // channels
}

func newResidual(name string, k kind, in, channels, stride int, padded bool) *residual {
	b := &residual{name: name, stride: stride, out: channels * int(k)}
	add := func(in, out, kernel, stride int) {
		i := len(b.convs) + 1
		b.convs = append(b.convs, newConv(fmt.Sprintf("%s.conv%d", name, i), in, out, kernel, stride))
		b.norms = append(b.norms, newNorm(fmt.Sprintf("%s.bn%d", name, i), out))
	}
	if k == basic {
		add(in, channels, 3, stride)
		add(channels, channels, 3, 1)
	} else {
		add(in, channels, 1, 1)
		add(channels, channels, 3, stride)
		add(channels, b.out, 1, 1)
	}
	if !padded && (stride != 1 || in != b.out) {
		b.project = newConv(name+".downsample.0", in, b.out, 1, stride)
		b.norm = newNorm(name+".downsample.1", b.out)
	}
	return b
}

// Name returns the block's name, such as "layer1.0".
func (b *residual) Name() string { return b.name }

// Forward applies the block. The shortcut comes after the last convolution, so
// that its gradient is used and freed first.
func (b *residual) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	x := nn.Only(b.name, in)
	y, last := x, len(b.convs)-1
	for i := range last {
		y = b.norms[i].Fused(t, b.convolve(t, i, y), nil, device.ReLU)
	}
	y = b.convolve(t, last, y)
	if short := b.shortcut(t, x); short != x {
		return t.List(b.norms[last].FusedOver(t, y, short, device.ReLU))
	}
	return t.List(b.norms[last].Fused(t, y, x, device.ReLU))
}

// convolve applies convolution i to y, which only the first of them shares with
// others. Inputs of the further ones are made again in the backward pass of a bottleneck,
// which saves a tenth of ResNet-50's memory.
func (b *residual) convolve(t *nn.Tape, i int, y *nn.Var) *nn.Var {
	z := b.convs[i].Forward(t, y)
	if i > 0 && len(b.convs) > 2 {
		t.Forget(y)
	}
	return z
}

func (b *residual) shortcut(t *nn.Tape, x *nn.Var) *nn.Var {
	if b.project != nil {
		return b.norm.Forward(t, b.project.Forward(t, x))
	}
	if b.stride != 1 {
		x = t.Pool(b.name, device.AvgPool, x, nn.PoolConfig{Window: nn.Square(1), Stride: nn.Square(b.stride)})
	}
	return t.PadChannels(b.name, x, b.out)
}

// Params lists the parameters in order of use.
func (b *residual) Params() []*nn.Param {
	var out []*nn.Param
	last := len(b.convs) - 1
	for i := range last {
		out = append(append(out, b.convs[i].Params()...), b.norms[i].Params()...)
	}
	out = append(out, b.convs[last].Params()...)
	if b.project != nil {
		out = append(append(out, b.project.Params()...), b.norm.Params()...)
	}
	return append(out, b.norms[last].Params()...)
}

// State lists the running statistics in the same order.
func (b *residual) State() []nn.State {
	var out []nn.State
	last := len(b.norms) - 1
	for i := range last {
		out = append(out, b.norms[i].State()...)
	}
	if b.norm != nil {
		out = append(out, b.norm.State()...)
	}
	return append(out, b.norms[last].State()...)
}
