package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// lean is a stem whose normalised images go to a pool alone, others that go to a
// convolution alone, and a sum with a normalised shortcut; without spare everything
// is kept.
func lean(spare bool) nntest.Case {
	stem, main, short := nn.NewBatchNorm2d("stem", 20, nn.BatchNormConfig{}), nn.NewBatchNorm2d("main", 20, nn.BatchNormConfig{}), nn.NewBatchNorm2d("short", 20, nn.BatchNormConfig{})
	pool := nn.NewMaxPool2d("pool", nn.PoolConfig{Window: nn.Square(2)})
	inner := nn.NewBatchNorm2d("inner", 20, nn.BatchNormConfig{})
	conv := nn.NewConv2d("conv", 20, 20, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1)})
	return nntest.Case{
		Layers: []nn.Layer{stem, inner, conv, main, short}, Inputs: []nn.Shape{nn.Image(2, 20, 4, 4)}, Fill: nntest.Spaced,
		Apply: func(t *nn.Tape, in []*nn.Var) *nn.Var {
			wide := stem.Fused(t, in[0], nil, device.ReLU)
			x := pool.Forward(t, wide)
			narrow := inner.Fused(t, x, nil, device.ReLU)
			y := conv.Forward(t, narrow)
			sum := main.Fused
			if spare {
				t.Forget(wide)
				t.Forget(narrow)
				sum = main.FusedOver
			}
			return sum(t, y, short.Forward(t, x), device.ReLU)
		},
	}
}

func TestForgottenAndOverwritten(t *testing.T) {
	for _, dev := range devices() {
		t.Run(dev.Name(), func(t *testing.T) {
			nntest.CheckReuse(t, dev, lean(true))
			nntest.CheckSplit(t, dev, lean(true))
			nntest.CheckFrozen(t, dev, lean(true))
			nntest.CheckTwice(t, dev, lean(true))
			nntest.CheckRecompute(t, dev, lean(true))
		})
	}
}

// What takes less memory computes the same bits, whatever has 16 of them.
func TestForgettingKeepsBits(t *testing.T) {
	for _, dev := range devices() {
		for _, p := range []nn.Precision{none, products, all, brains} {
			kept, most := leanPass(t, dev, p, false)
			spared, peak := leanPass(t, dev, p, true)
			require.Equal(t, kept, spared, "%s %+v", dev.Name(), p)
			require.Less(t, peak, most)
		}
	}
}

// leanPass returns the bits of a pass's result and of all gradients, and the most
// bytes that it held at the end of the forward pass.
func leanPass(t *testing.T, dev device.Device, p nn.Precision, spare bool) (bits [][]byte, peak int) {
	c := lean(spare)
	require.NoError(t, nn.Materialize(dev, []nn.Block{nn.NewSeq("lean", c.Layers...)}, 1))
	values := make([]float32, c.Inputs[0].Len())
	nntest.Spaced("input0", values)
	tape := nn.NewTape(dev)
	nntest.Poison(tape)
	tape.Begin(nn.Pass{Training: true, Precision: p})
	x := tape.Input(device.FromF32(values), c.Inputs[0], true)
	y := c.Apply(tape, []*nn.Var{x})
	peak = tape.Arena().Peak()
	bits = append(bits, append([]byte(nil), y.Value.Bytes()...))
	gradient, err := dev.Alloc(y.Value.Type, y.Value.Len)
	require.NoError(t, err)
	copy(gradient.Bytes(), y.Value.Bytes())
	tape.SeedGrad(y, gradient)
	tape.Backward()
	bits = append(bits, append([]byte(nil), x.Grad().Bytes()...))
	for _, l := range c.Layers {
		for _, p := range l.Params() {
			g, written := p.Grad(0)
			require.True(t, written)
			bits = append(bits, append([]byte(nil), g.Bytes()...))
		}
	}
	return bits, peak
}
