package parallel

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

func lossyTrial(format string, steps int) trial {
	c := Compression{Format: format, Start: 2}
	if format == "topk" {
		c.Momentum, c.Nesterov = 0.9, true
	}
	tr := trial{model: mlpConfig, optim: optim.Config{Name: "sgd"}, micro: 5, steps: steps, data: newSamples(24, 1, 4)}
	tr.fusion = FusionConfig{ThresholdMB: 0.001, FirstMB: 0.0005, Wire: c}
	return tr
}

// All ranks end with the same bits, and a second run gives them again.
func TestLossyWiresAreRepeatable(t *testing.T) {
	for _, format := range CompressionFormats() {
		for _, ranks := range []int{1, 2, 3} {
			tr := lossyTrial(format, 4)
			first, last := tr.everywhere(t, ranks)
			again1, again2 := tr.everywhere(t, ranks)
			require.Equal(t, []string{first, last}, []string{again1, again2}, "%s on %d ranks", format, ranks)
		}
	}
}

// sums reduces a vector again and again with one bucket's feedback and returns
// all results, and all that the ranks were given.
func sums(t *testing.T, format string, ranks, steps int, acrossHosts bool) (results, given, kept []float64) {
	const n = 3000
	results, given, kept = make([]float64, n), make([]float64, n), make([]float64, n)
	all := make([][][]float32, ranks) // by rank and step
	for r := range ranks {
		rng := rand.New(rand.NewPCG(uint64(r), 11))
		for range steps {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				given[i] += float64(x[i])
			}
			all[r] = append(all[r], x)
		}
	}
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
		cfg := FusionConfig{Wire: Compression{Format: format, Start: 1, AcrossHosts: acrossHosts}}
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
			results, given, kept := sums(t, format, ranks, 12, false)
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
		f := newFeedback(n, true)
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

// A sent value takes its momentum with it, what is not sent goes on.
func TestTopKMasksMomentum(t *testing.T) {
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		p := &nn.Param{Name: "p", Shape: []int{400}}
		b := cutBuckets([]*nn.Param{p}, 1<<20, 1<<20)[0]
		b.grad = device.FromF32(make([]float32, b.size))
		r := newReducer(ctx, FusionConfig{Wire: Compression{Format: "topk", Momentum: 0.5}}, c, []*nn.Param{p})
		r.step = 1000 // past the warm-up
		for i := range b.grad.F32() {
			b.grad.F32()[i] = 1
		}
		b.grad.F32()[7], b.grad.F32()[300] = 9, 9
		if err := r.reduction.start(b).Wait(ctx); err != nil {
			return err
		}
		f := b.feedback
		for i, v := range b.grad.F32() {
			sent := v != 0
			if (i == 7 || i == 300) != sent && v > 2 {
				return fmt.Errorf("element %d is %v", i, v)
			}
		}
		for i, v := range f.velocity {
			if i != 7 && i != 300 && v != 0 && v != 1 || (i == 7 || i == 300) && v != 0 {
				return fmt.Errorf("velocity %d is %v", i, v)
			}
		}
		return nil
	}))
}

// TestKeptIsRestored stops a training and goes on with what was kept: on as many
// ranks to the same bits, on others with the same total.
func TestKeptIsRestored(t *testing.T) {
	for _, format := range []string{"int8", "topk", PowerSGD} {
		tr := lossyTrial(format, 6)
		_, want := tr.everywhere(t, 2)
		tr.steps = 3
		saved := map[string]Named{}
		var digest [2]string
		require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
			g, run, err := tr.start(ctx, c)
			if err != nil {
				return err
			}
			defer g.Close()
			if err := run(3); err != nil {
				return err
			}
			params, err := g.OptimizerState()
			if err != nil {
				return err
			}
			for _, s := range g.stages {
				params = append(params, Params(s.params)...)
			}
			keep := func(n Named) error {
				if c.Rank() == 0 {
					n.Buf = device.FromF32(slices.Clone(n.Buf.F32()))
					saved[n.Name] = n
				}
				return nil
			}
			if err := g.EachKept(ctx, keep); err != nil {
				return err
			}
			for _, p := range params {
				if err := keep(Named{"whole " + p.Name, p.Shape, p.Buf}); err != nil {
					return err
				}
			}
			d, err := g.KeptDigests(ctx)
			digest[c.Rank()] = Hash([]Named{d})
			return err
		}))
		load := func(name string) ([]float32, error) { return saved[name].Buf.F32(), nil }
		for _, ranks := range []int{2, 3, 1} {
			hashes := make([]string, ranks)
			total := map[string][]float32{}
			require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
				g, run, err := tr.start(ctx, c)
				if err != nil {
					return err
				}
				defer g.Close()
				for _, p := range g.stages[0].params {
					copy(p.Value.F32(), saved["whole "+p.Name].Buf.F32())
				}
				g.RestoreKept(load)
				if err := g.Restore(3, func(param, name string, to device.Buf) error {
					copy(to.F32(), saved["whole "+StateName(param, name)].Buf.F32())
					return nil
				}); err != nil {
					return err
				}
				// Asking for the state cuts buckets in another order than a backward
				// pass does, so results differ by rounding.
				if ranks != 2 {
					if _, err := g.OptimizerState(); err != nil {
						return err
					}
					if err := g.EachKept(ctx, func(n Named) error {
						total[n.Name] = columnSums(n)
						return nil
					}); err != nil {
						return err
					}
				}
				if err := run(3); err != nil {
					return err
				}
				state, err := g.OptimizerState()
				hashes[c.Rank()] = Hash(append(append(state, Params(g.stages[0].params)...), States(g.stages[0].states)...))
				return err
			}))
			for name, sum := range total {
				require.Equal(t, columnSums(saved[name]), sum, "%s of %s on %d ranks", name, format, ranks)
			}
			require.Equal(t, ranks != 2, len(total) > 0)
			if ranks == 2 {
				require.Equal(t, digest[0], digest[1])
				require.Equal(t, want, hashes[0], format)
			}
			for r := range hashes {
				require.Equal(t, hashes[0], hashes[r])
			}
		}
	}
}

// columnSums adds up the rows of a tensor, in float32 as a rank does that takes
// both of two.
func columnSums(n Named) []float32 {
	width := n.Shape[len(n.Shape)-1]
	out := make([]float32, width)
	for i, v := range n.Buf.F32() {
		out[i%width] += v
	}
	return out
}

// start makes the trial's GradFusion on a rank, and what runs steps of it.
func (tr trial) start(ctx context.Context, c collective.Comm) (*GradFusion, func(steps int) error, error) {
	dev := naive.New()
	m, err := models.New(tr.model)
	if err != nil {
		return nil, nil, err
	}
	if err := nn.Materialize(dev, m.Blocks, 0); err != nil {
		return nil, nil, err
	}
	opt, err := optim.New(tr.optim)
	if err != nil {
		return nil, nil, err
	}
	cfg := tr.fusion
	cfg.Device = dev
	stages := []Stage{{Blocks: m.Blocks, Comm: c}}
	g, err := NewGradFusion(ctx, stages, opt, cfg)
	if err != nil {
		return nil, nil, err
	}
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return tr.data.batch(m), nil }})
	return g, func(steps int) error {
		for range steps {
			if err := e.Step(ctx, len(tr.data.y), tr.micro); err != nil {
				return err
			}
			if err := g.Step(0.05); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// Kept values follow the loss scale.
func TestKeptIsRescaled(t *testing.T) {
	f := newFeedback(3, true)
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
	f := newFeedback(4, false)
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

func TestBadCompression(t *testing.T) {
	for text, cfg := range map[string]FusionConfig{
		"int5":          {Wire: Compression{Format: "int5"}},
		"Deterministic": {Wire: Compression{Format: "f16"}, Deterministic: true},
		"powersgd":      {Wire: Compression{Format: PowerSGD, AcrossHosts: true}},
		"LocalSGD":      {Wire: Compression{Format: "int8"}, LocalSGD: 4},
		"topk, not f16": {Wire: Compression{Format: "f16", Momentum: 0.9}},
	} {
		c := collective.NewGroup(inproc.New(1)[0], collective.GroupConfig{})
		cfg.Device = naive.New()
		m, err := models.New(mlpConfig)
		require.NoError(t, err)
		require.NoError(t, nn.Materialize(cfg.Device, m.Blocks, 1))
		opt, err := optim.New(optim.Config{Name: "sgd"})
		require.NoError(t, err)
		_, err = NewGradFusion(t.Context(), []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
		require.ErrorContains(t, err, text)
		require.NoError(t, c.Close())
	}
}

// The shares of the warm-up.
func TestTopKShares(t *testing.T) {
	c := Compression{Format: "topk", Start: 11}
	var shares []float64
	for step := 11; step < 11+5*RampSteps; step += RampSteps {
		shares = append(shares, c.share(step), c.share(step+RampSteps-1))
	}
	require.Equal(t, []float64{0.25, 0.25, 0.0625, 0.0625, 0.015625, 0.015625, 0.01, 0.01, 0.01, 0.01}, shares)
}

// A gradient that is not finite arrives as such and leaves nothing behind.
func TestNotFinitePasses(t *testing.T) {
	for _, format := range CompressionFormats() {
		require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
			p := &nn.Param{Name: "p", Shape: []int{40, 40}}
			b := cutBuckets([]*nn.Param{p}, 1<<20, 1<<20)[0]
			b.grad = device.FromF32(make([]float32, b.size))
			r := newReducer(ctx, FusionConfig{Wire: Compression{Format: format, Start: 1}}, c, []*nn.Param{p})
			defer r.reduction.close()
			for step := 1; step <= 2; step++ {
				r.step = step
				for i := range b.grad.F32() {
					b.grad.F32()[i] = float32(i % 7)
				}
				if step == 1 && c.Rank() == 1 {
					b.grad.F32()[3] = float32(math.Inf(1))
				}
				if err := r.reduction.start(b).Wait(ctx); err != nil {
					return err
				}
				finite := true
				for _, v := range b.grad.F32() {
					finite = finite && v-v == 0
				}
				if finite != (step == 2) {
					return fmt.Errorf("%s, step %d: finite %v", format, step, finite)
				}
			}
			return nil
		}))
	}
}
