package optim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

const seed = 7

// draws returns the values and gradients of trained.
func draws(n, steps int) (start []float32, gradients [][]float32) {
	r := rand.New(rand.NewPCG(seed, 0))
	row := func() []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	start = row()
	for range steps {
		gradients = append(gradients, row())
	}
	return start, gradients
}

// trained returns a parameter of 1000 elements after ten steps with clipping,
// held in segments that end at ends, and its optimizer.
func trained(t *testing.T, dev device.Device, name string, ends ...int) (*nn.Param, Optimizer) {
	t.Helper()
	p := param(t, "layer.weight", 1000, true)
	start, gradients := draws(1000, 10)
	copy(p.Value.F32(), start)
	grad := device.FromF32(make([]float32, 1000))
	segments := cut(p, grad, ends...)
	o, err := New(Config{Name: name, WeightDecay: 0.01})
	require.NoError(t, err)
	require.NoError(t, o.Init(dev, segments))
	norm, err := NewNorm(dev, segments)
	require.NoError(t, err)
	for step := 1; step <= 10; step++ {
		copy(grad.F32(), gradients[step-1])
		n, err := norm.Global(segments)
		require.NoError(t, err)
		require.NoError(t, o.Update(step, segments, 0.1, ClipScale(n, 1)))
	}
	return p, o
}

func TestCutsChangeNoBit(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range Names() {
			whole, wholeOptimizer := trained(t, dev, name)
			parts, partsOptimizer := trained(t, dev, name, 128, 640)
			require.Equal(t, whole.Value.F32(), parts.Value.F32(), "%s, %s, seed %d", dev.Name(), name, seed)
			require.Equal(t, state(t, wholeOptimizer), state(t, partsOptimizer), "%s, %s, seed %d", dev.Name(), name, seed)
		}
	}
}

// state joins the state of all segments by name.
func state(t *testing.T, o Optimizer) map[string][]float32 {
	t.Helper()
	out := map[string][]float32{}
	require.NoError(t, o.State(func(name string, s Segment, b device.Buf) error {
		require.Equal(t, s.Lo, len(out[name]))
		require.Equal(t, s.Hi-s.Lo, b.Len)
		out[name] = append(out[name], b.F32()...)
		return nil
	}))
	return out
}

func TestStateIsLoadedIntoOtherSegments(t *testing.T) {
	for _, name := range Names() {
		p, from := trained(t, naive.New(), name, 256)
		saved := state(t, from)
		q := param(t, p.Name, 1000, true)
		copy(q.Value.F32(), p.Value.F32())
		grad := device.FromF32(make([]float32, 1000))
		for i := range grad.F32() {
			grad.F32()[i] = float32(i%17) - 8
		}
		into, err := New(Config{Name: name, WeightDecay: 0.01})
		require.NoError(t, err)
		segments := cut(q, grad, 128, 512)
		require.NoError(t, into.Init(naive.New(), segments))
		require.NoError(t, into.State(func(name string, s Segment, b device.Buf) error {
			copy(b.F32(), saved[name][s.Lo:s.Hi])
			return nil
		}))
		require.NoError(t, from.Update(11, cut(p, grad, 256), 0.1, 1))
		require.NoError(t, into.Update(11, segments, 0.1, 1))
		require.Equal(t, p.Value.F32(), q.Value.F32(), name)
	}
}

func TestStateNamesWhatFailed(t *testing.T) {
	_, o := trained(t, naive.New(), "adam", 128)
	err := o.State(func(name string, s Segment, b device.Buf) error {
		if name == "variance" && s.Lo == 128 {
			return errors.New("disk full")
		}
		return nil
	})
	require.EqualError(t, err, "optim: variance of layer.weight[128:1000]: disk full")
}

func TestBadSegments(t *testing.T) {
	p := param(t, "w", 1000, true)
	for want, s := range map[string]Segment{
		"[0, 1001) is no segment of w, which has 1000 elements": {Param: p, Hi: 1001},
		"[256, 256) is no segment of w":                         {Param: p, Lo: 256, Hi: 256},
		"[100, 1000) of w is not cut on multiples of 128":       {Param: p, Lo: 100, Hi: 1000},
		"[0, 130) of w is not cut on multiples of 128":          {Param: p, Hi: 130},
	} {
		o, err := New(Config{})
		require.NoError(t, err)
		require.ErrorContains(t, o.Init(naive.New(), []Segment{s}), want)
		_, err = NewNorm(naive.New(), []Segment{s})
		require.ErrorContains(t, err, want)
	}
	o, err := New(Config{})
	require.NoError(t, err)
	require.NoError(t, o.Init(naive.New(), []Segment{{Param: p, Hi: 1000}}))
	require.PanicsWithValue(t, "optim: Update with 0 segments, Init had 1", func() { _ = o.Update(1, nil, 1, 1) })
	require.PanicsWithValue(t, "optim: segment 0 of Update is w[0:128], Init had w[0:1000]", func() {
		_ = o.Update(1, []Segment{{Param: p, Hi: 128}}, 1, 1)
	})
}

func TestUpdateAllocatesNothing(t *testing.T) {
	p := param(t, "w", 1000, true)
	segments := cut(p, device.FromF32(make([]float32, 1000)), 256, 512)
	for _, dev := range devices(t) {
		for _, name := range Names() {
			o, err := New(Config{Name: name})
			require.NoError(t, err)
			require.NoError(t, o.Init(dev, segments))
			norm, err := NewNorm(dev, segments)
			require.NoError(t, err)
			step := 0
			require.Zero(t, testing.AllocsPerRun(10, func() {
				step++
				n, _ := norm.Global(segments)
				_ = o.Update(step, segments, 0.1, ClipScale(n, 1))
			}), "%s, %s", dev.Name(), name)
		}
	}
}

func ExampleNew() {
	weight := &nn.Param{Name: "weight", Shape: []int{2}, Value: device.FromF32([]float32{1, 2})}
	segments := []Segment{{Param: weight, Hi: 2, Grad: device.FromF32([]float32{0.5, -0.5})}}
	o, err := New(Config{Name: "sgd"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := o.Init(naive.New(), segments); err != nil {
		fmt.Println(err)
		return
	}
	if err := o.Update(1, segments, 0.5, 1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(weight.Value.F32())
	// Output: [0.75 2.25]
}
