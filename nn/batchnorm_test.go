package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// single runs one layer forward on values and returns the output's values.
func single(t *testing.T, dev device.Device, p nn.Pass, l nn.Layer, s nn.Shape, values []float32) []float32 {
	tape := nn.NewTape(dev)
	tape.Begin(p)
	y := l.Forward(tape, tape.Input(nntest.Pack(s, values), s, false))
	return nntest.Unpack(y.Shape, y.Value)
}

func materialize(t *testing.T, dev device.Device, layers ...nn.Layer) {
	require.NoError(t, nn.Materialize(dev, []nn.Block{nn.NewSeq("test", layers...)}, 1))
}

// Four values of each channel have exact moments: 1, 3, 1, 3 has mean 2 and
// squared deviations 4; 0, 0, 8, 8 has mean 4 and 64.
func TestBatchNormEmitsMomentsAndNormalisesByThem(t *testing.T) {
	for _, dev := range devices() {
		l := nn.NewBatchNorm2d("bn", 2, nn.BatchNormConfig{})
		materialize(t, dev, l)
		got := single(t, dev, nn.Pass{Training: true, Micro: 5}, l, nn.Image(2, 2, 1, 2), []float32{1, 3, 0, 0, 1, 3, 8, 8})
		one, four := float32(1/math.Sqrt(1+1e-5)), float32(4/math.Sqrt(16+1e-5))
		require.InDeltaSlice(t, []float32{-one, one, -four, -four, -one, one, four, four}, got, 1e-6) // a few roundings of values near 1

		r := l.Norm.Running
		require.Equal(t, []nn.Moments{{Leaf: 5, Count: 4, Mean: []float64{2, 4}, M2: []float64{4, 64}}}, r.Emitted())
		require.Equal(t, []float32{0, 0}, r.Mean.F32(), "a forward pass leaves the running statistics alone")
		r.Update(r.Emitted())
		require.Empty(t, r.Emitted())
		require.Equal(t, []float32{float32(0.1 * 2.0), float32(0.1 * 4.0)}, r.Mean.F32())
		require.InDeltaSlice(t, []float32{0.9 + 0.1*4/3, 0.9 + 0.1*64/3}, r.Var.F32(), 1e-6) // unbiased; rounded once
	}
}

func TestBatchNormEvaluatesByRunningStatistics(t *testing.T) {
	for _, dev := range devices() {
		l := nn.NewBatchNorm2d("bn", 2, nn.BatchNormConfig{Epsilon: 1})
		materialize(t, dev, l)
		copy(l.Norm.Running.Mean.F32(), []float32{1, -2})
		copy(l.Norm.Running.Var.F32(), []float32{3, 15}) // roots of 4 and 16 with epsilon: exact
		copy(l.Norm.Scale.Value.F32(), []float32{2, 4})
		copy(l.Norm.Shift.Value.F32(), []float32{10, 20})
		want := []float32{10 + 4, 20 + 8}
		got := single(t, dev, nn.Pass{}, l, nn.Image(1, 2, 1, 1), []float32{5, 6})
		require.Equal(t, want, got)
		require.Zero(t, l.Norm.Running.Singles)

		// So does a training pass with one value per channel.
		got = single(t, dev, nn.Pass{Training: true}, l, nn.Image(1, 2, 1, 1), []float32{5, 6})
		require.Equal(t, want, got)
		require.Equal(t, 1, l.Norm.Running.Singles)
		require.Empty(t, l.Norm.Running.Emitted())
	}
}

func TestBatchNormAddsAndRectifies(t *testing.T) {
	for _, dev := range devices() {
		l := nn.NewBatchNorm2d("bn", 1, nn.BatchNormConfig{Epsilon: 3}) // deviation 1 + 3: divides by 2
		materialize(t, dev, l)
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true})
		s := nn.Image(1, 1, 1, 2)
		x := tape.Input(nntest.Pack(s, []float32{4, 6}), s, false)
		y := l.Fused(tape, x, tape.Input(nntest.Pack(s, []float32{0.25, 1}), s, false), device.ReLU)
		require.Equal(t, []float32{0, 1.5}, nntest.Unpack(s, y.Value))
	}
}

// A layer that stands in two blocks has its parameters and states once.
func TestSharedLayerIsListedOnce(t *testing.T) {
	l := nn.NewBatchNorm2d("bn", 3, nn.BatchNormConfig{})
	blocks := []nn.Block{nn.NewSeq("a", l), nn.NewSeq("b", nn.ReLU{}, l)}
	require.NoError(t, nn.Materialize(naive.New(), blocks, 1))
	require.Len(t, nn.Params(blocks), 2)
	require.Len(t, nn.States(blocks), 2)
}

// Merging the moments of parts gives those of the whole, for every cut, and the
// order of merging is that of the leaves.
func TestRunningMergesMicroBatches(t *testing.T) {
	values := []float32{3, -1, 4, 1, -5, 9, 2, 6}
	whole := update(t, values)
	for cut := 1; cut < len(values); cut++ {
		got := update(t, values[:cut], values[cut:])
		require.InDelta(t, whole[0], got[0], 1e-7) // one rounding of float32
		require.InDelta(t, whole[1], got[1], 1e-6)
	}
}

func update(t *testing.T, parts ...[]float32) [2]float32 {
	dev := naive.New()
	l := nn.NewBatchNorm2d("bn", 1, nn.BatchNormConfig{Momentum: 0.5})
	materialize(t, dev, l)
	r := l.Norm.Running
	var all []nn.Moments
	for i, p := range parts {
		if len(p) == 1 { // emitted by nobody, but merged all the same
			all = append(all, nn.Moments{Leaf: i, Count: 1, Mean: []float64{float64(p[0])}, M2: []float64{0}})
			continue
		}
		single(t, dev, nn.Pass{Training: true, Micro: i}, l, nn.Plain(len(p), 1), p)
		all = append(all, r.Emitted()[len(r.Emitted())-1])
	}
	r.Update(all)
	return [2]float32{r.Mean.F32()[0], r.Var.F32()[0]}
}
