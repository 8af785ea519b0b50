package models_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

// memoryOf trains one micro-batch of n samples and returns the most bytes of
// activations and gradients that were held at once, and what the arena took.
func memoryOf(t *testing.T, c models.Config, n int, recompute bool) (peak, footprint int) {
	t.Helper()
	dev, err := cpu.New(cpu.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	m, err := models.New(c)
	require.NoError(t, err)
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	x, err := dev.Alloc(device.F32, m.Input(n).Len())
	require.NoError(t, err)
	tape, labels := nn.NewTape(dev), device.FromI32(make([]int32, n))
	for range 2 { // the second pass takes no more
		tape.Begin(nn.Pass{Training: true, Recompute: recompute})
		out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(n), false))
		tape.SeedLoss(tape.CrossEntropy(out[0], labels, nn.CrossEntropyConfig{}), 1)
		tape.Backward()
		if footprint == 0 {
			footprint = tape.Arena().Footprint()
		}
		require.Equal(t, footprint, tape.Arena().Footprint())
	}
	return tape.Arena().Peak(), footprint
}

// A hidden layer keeps one matrix, over which ReLU has written. The backward
// pass adds the gradient that comes and the one that goes, and of the head the
// logits and their gradient; the softmax is gone by then. The score is 12 bytes.
func TestMemoryOfDeepMLP(t *testing.T) {
	const n, width, depth, classes = 16, 1024, 12, 10
	c := models.Config{Name: "mlp", Channels: 1, Height: 4, Width: 4, Classes: classes}
	for range depth {
		c.Hidden = append(c.Hidden, width)
	}
	peak, footprint := memoryOf(t, c, n, false)
	require.Equal(t, 4*((depth+1)*n*width+2*n*classes)+12, peak)
	require.Less(t, footprint, peak+peak/8) // gaps
}

// In units of the first stage's activations (16 channels of 32 x 32 pixels): a
// stem of two, blocks of four, 3 in the first stage; in units of a half and a
// quarter one more for the shortcut of the first of 3 blocks, whose normalised form
// becomes the block's result. All are held when
// the backward pass begins, whose last BatchNorm needs the gradient that comes
// (over which it writes) and one for the shortcut.
func TestMemoryOfResNet20(t *testing.T) {
	const n, unit = 8, 4 * 16 * 32 * 32
	c := models.Config{Name: "resnet20", Channels: 3, Height: 32, Width: 32, Classes: 10}
	want := n * (unit*(2+3*4) + unit/2*(3*4+1) + unit/4*(3*4+1) + unit/4*2)
	peak, footprint := memoryOf(t, c, n, false)
	require.GreaterOrEqual(t, peak, want)
	require.Less(t, peak, want+want/100, "statistics and the head take less than 1 %")
	require.Less(t, footprint, peak+peak/8)

	// With recomputation the outputs of the stem and the blocks are kept (in the
	// first stage 4 units), and the inside of the block that is run again.
	less, footprint := memoryOf(t, c, n, true)
	kept := n * (unit*4 + unit/2*3 + unit/4*3)
	require.Less(t, less, kept+n*unit*5)
	require.Less(t, footprint, less+less/8)
}
