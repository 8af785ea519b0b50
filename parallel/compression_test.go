package parallel

import (
	"context"
	"fmt"
	"math"
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
			if (i == 7 || i == 300) && !sent || v > 2 && i != 7 && i != 300 {
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
