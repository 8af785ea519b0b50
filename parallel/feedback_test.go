package parallel

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/wire"
)

// randomGradients returns vectors of n numbers by rank and step, and their sum.
func randomGradients(n, ranks, steps int) (all [][][]float32, sum []float64) {
	all, sum = make([][][]float32, ranks), make([]float64, n)
	for r := range ranks {
		rng := rand.New(rand.NewPCG(uint64(r), 11))
		for range steps {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				sum[i] += float64(x[i])
			}
			all[r] = append(all[r], x)
		}
	}
	return all, sum
}

// sums reduces a vector again and again with one bucket's feedback and returns
// the sums of all results, of all that the ranks were given, and of what they keep.
func sums(t *testing.T, format string, ranks, steps int) (results, given, kept []float64) {
	const n = 3000
	all, given := randomGradients(n, ranks, steps)
	results, kept = make([]float64, n), make([]float64, n)
	buckets := make([]*bucket, ranks)
	outcome := make([][]float64, ranks)
	require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		// Two matrices and a vector.
		var params []*nn.Param
		for i, shape := range [][]int{{40, 50}, {30, 30}, {100}} {
			params = append(params, &nn.Param{Name: fmt.Sprint("p", i), Shape: shape})
		}
		b := cutBuckets(params, 1<<20, 1<<20)[0]
		b.grad = device.FromF32(make([]float32, b.size))
		cfg := FusionConfig{Wire: Compression{Format: format, Start: 1}}
		r := newReducer(ctx, cfg, c, params)
		r.buckets, buckets[c.Rank()] = []*bucket{b}, b
		defer r.reduction.close()
		out := make([]float64, b.size)
		for step := range steps {
			r.step = step + 1
			clear(b.grad.F32())
			for i, e := range b.entries {
				copy(e.slot(b.grad, 0).F32(), all[c.Rank()][step][[]int{0, 2000, 2900}[i]:])
			}
			if err := r.reduction.start(b).Wait(ctx); err != nil {
				return err
			}
			for i, v := range b.grad.F32() {
				out[i] += float64(v)
			}
		}
		outcome[c.Rank()] = out
		return nil
	}))
	for r, b := range buckets {
		require.Equal(t, outcome[0], outcome[r])
		for i, e := range b.entries {
			lo, at := e.offset, []int{0, 2000, 2900}[i]
			for j := range e.param.Len() {
				if b.feedback != nil {
					kept[at+j] += float64(b.feedback.kept[lo+j])
				}
				if r == 0 {
					results[at+j] = outcome[0][lo+j]
				}
			}
		}
	}
	return results, given, kept
}

// Nothing is lost: what was sent and what is kept make up all gradients of all
// steps, up to the roundings of float32 sums.
func TestFeedbackLosesNothing(t *testing.T) {
	for _, format := range []string{"int8", "int4", "topk", PowerSGD} {
		for _, ranks := range []int{2, 3} {
			results, given, kept := sums(t, format, ranks, 12)
			some := false
			for i := range given {
				require.InDelta(t, given[i], results[i]+kept[i], 1e-4, "%s on %d ranks: %v sent, %v kept", format, ranks, results[i], kept[i])
				some = some || kept[i] != 0
			}
			require.True(t, some, "%s keeps nothing", format)
		}
	}
}

// A bucket's dense phase is the momentum that the optimizer would have.
func TestTopKBeginsAsMomentum(t *testing.T) {
	for _, nesterov := range []bool{false, true} {
		const n, momentum = 50, 0.9
		f := newFeedback(make([]float32, 2*n), true)
		f.momentum, f.nesterov = momentum, nesterov
		velocity := make([]float64, n)
		rng := rand.New(rand.NewPCG(1, 12))
		for range 10 {
			x := make([]float32, n)
			want := make([]float64, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				velocity[i] = momentum*velocity[i] + float64(x[i])
				want[i] = velocity[i]
				if nesterov {
					want[i] = float64(x[i]) + momentum*velocity[i]
				}
			}
			f.dense(x)
			for i := range x {
				require.InDelta(t, want[i], x[i], 1e-5)
				require.Zero(t, f.kept[i])
			}
		}
	}
}

// Kept values follow the loss scale.
func TestKeptIsRescaled(t *testing.T) {
	f := newFeedback(make([]float32, 6), true)
	copy(f.kept, []float32{1, 2, 3})
	copy(f.velocity, []float32{4, 5, 6})
	f.rescale(8)
	require.Equal(t, []float32{1, 2, 3}, f.kept)
	f.rescale(2)
	require.Equal(t, []float32{0.25, 0.5, 0.75}, f.kept)
	require.Equal(t, []float32{1, 1.25, 1.5}, f.velocity)
}

// What a resumed rank keeps of elements that it does not encode any more is
// handed to those who do, once.
func TestOrphansAreSent(t *testing.T) {
	f := newFeedback(make([]float32, 4), false)
	f.restored = true
	copy(f.kept, []float32{1, 2, 3, 4})
	grad := []float32{10, 10, 10, 10}
	f.begin(grad, true)
	f.note(1, 2)
	require.Equal(t, []float32{10, 10, 10, 10}, grad)
	f.begin(grad, true)
	require.Equal(t, []float32{11, 10, 10, 14}, grad)
	require.Equal(t, []float32{0, 2, 3, 0}, f.kept)
	f.begin(grad, true)
	require.Equal(t, []float32{11, 10, 10, 14}, grad)
}

// Working run by run changes no bit of what is sent and kept.
func TestFeedbackByRuns(t *testing.T) {
	const n, momentum = 1<<17 + 1001, 0.9
	r := rand.New(rand.NewPCG(1, 2))
	f, top := newFeedback(make([]float32, 2*n), true), wire.NewTopK(0)
	f.format, f.momentum = top, momentum
	kept, velocity, gradient := make([]float32, n), make([]float32, n), make([]float32, n)
	got, want := make([]byte, f.EncodedLen(n)), make([]byte, f.EncodedLen(n))
	for step := range 3 {
		for i := range gradient {
			gradient[i] = float32(r.NormFloat64())
		}
		if step == 1 {
			gradient[n-1] = float32(math.NaN())
		}
		wire.Momentum(kept, velocity, gradient, momentum, false)
		dropNotFinite(velocity)
		top.EncodeKeeping(want, kept, 0)
		top.ClearSent(want, velocity)
		f.Encode(got, gradient, 0)
		require.Equal(t, want, got)
		require.Equal(t, kept, f.kept)
		require.Equal(t, velocity, f.velocity)
		require.Zero(t, testing.AllocsPerRun(1, func() { f.EncodeSum(got, gradient, 0) }))
		f.kept = append(f.kept[:0], kept...)
		f.velocity = append(f.velocity[:0], velocity...)
	}
}

// TestKeep: buckets that ask in any order get memory of their own, in one run.
func TestKeep(t *testing.T) {
	r := &reducer{buckets: []*bucket{{size: 5}, {size: 700}, {size: 3}}}
	for i, k := range []int{1, 0, 2} {
		b := r.buckets[k]
		memory := r.keep(b.size, 2)
		require.Len(t, memory, 2*b.size)
		b.feedback = newFeedback(memory, true)
		require.Len(t, b.feedback.kept, b.size)
		require.Len(t, b.feedback.velocity, b.size)
		for j := range memory {
			require.Zero(t, memory[j])
			memory[j] = float32(i + 1)
		}
	}
	require.Empty(t, r.kept)
	for _, b := range r.buckets {
		require.Equal(t, b.feedback.kept[0], b.feedback.velocity[b.size-1], "somebody else has written there")
	}
}
