package models_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

// TestGradientsByEveryConvolution compares the first gradients of a network with
// those of sums in float64. Rounding differences of 1e-7 a layer grow on their
// way through a dozen layers and their norms; those of Winograd's 4 x 4 tiles
// are up to ten times as large.
func TestGradientsByEveryConvolution(t *testing.T) {
	c := config("resnet20", 3, 16, 10)
	c.Stages = []int{2, 2, 2}
	want := firstGradients(t, naive.New(), c)
	for method, bound := range map[string]float64{"direct": 1e-5, "auto": 1e-4, "winograd2": 1e-4, "winograd4": 1e-4} {
		dev, err := cpu.New(cpu.Config{Conv: method})
		if err != nil {
			require.ErrorContains(t, err, "use auto or direct") // for want of such kernels
			continue
		}
		for name, got := range firstGradients(t, dev, c) {
			var above, below float64
			for i, v := range want[name] {
				above += math.Pow(float64(got[i])-float64(v), 2)
				below += math.Pow(float64(v), 2)
			}
			require.LessOrEqual(t, math.Sqrt(above), bound*math.Sqrt(below), "%s of %s", name, method)
		}
		require.NoError(t, dev.Close())
	}
}

// firstGradients returns a copy of every parameter's gradient.
func firstGradients(t *testing.T, dev device.Device, c models.Config) map[string][]float32 {
	const batch = 4
	m, err := models.New(c)
	require.NoError(t, err)
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	x, labels := samples(t, dev, m, batch)
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true})
	out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(batch), false))
	tape.SeedLoss(tape.CrossEntropy(out[0], labels, nn.CrossEntropyConfig{}), 1.0/batch)
	tape.Backward()
	all := map[string][]float32{}
	for _, p := range nn.Params(m.Blocks) {
		g, ok := p.Grad(0)
		require.True(t, ok, p.Name)
		all[p.Name] = append([]float32(nil), g.F32()...)
	}
	return all
}
