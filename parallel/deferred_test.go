package parallel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// allOrders is how many steps a GradFusion needs to have sent its buckets in all
// orders that it tries.
const allOrders = observedSteps + 2

// TestDeferredIsTheSame: that sums go on beside the next forward pass changes no
// bit, with any sum, optimizer, threshold and number of ranks, those without a
// micro-batch included.
func TestDeferredIsTheSame(t *testing.T) {
	for name, fusion := range map[string]FusionConfig{
		"deterministic": {Deterministic: true},
		"ring":          {},
		"f16":           {Wire: Compression{Format: "f16"}},
		"int8":          {Wire: Compression{Format: "int8"}},
		"topk":          {Wire: Compression{Format: "topk", Momentum: 0.9}},
	} {
		tr := trial{model: mlpConfig, micro: 3, steps: allOrders, data: newSamples(14, 1, 4), fusion: fusion}
		if name == "topk" {
			tr.optim.Name = "sgd"
		}
		for ranks := 1; ranks <= 6; ranks++ {
			for _, threshold := range []float64{0.0005, 1000} {
				tr.fusion.ThresholdMB, tr.fusion.FirstMB, tr.fusion.Defer = threshold, threshold, false
				wantFirst, wantLast := tr.everywhere(t, ranks)
				tr.fusion.Defer = true
				first, last := tr.everywhere(t, ranks)
				require.Equal(t, wantFirst, first, "%s, %d ranks, %g MB", name, ranks, threshold)
				require.Equal(t, wantLast, last, "%s, %d ranks, %g MB", name, ranks, threshold)
			}
		}
	}
}

func TestDeferredOptimizers(t *testing.T) {
	for _, name := range optim.Names() {
		tr := trial{model: mlpConfig, micro: 2, steps: allOrders, data: newSamples(4, 1, 4), optim: optim.Config{Name: name, WeightDecay: 0.01}}
		if name == "nesterov" { // with running statistics
			tr.model, tr.data = resnetConfig, newSamples(4, 3, 8)
		}
		tr.fusion = FusionConfig{ThresholdMB: 0.001, Deterministic: true}
		_, want := tr.everywhere(t, 2)
		tr.fusion.Defer = true
		if name == "lars" || name == "lamb" {
			require.ErrorContains(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
				_, _, err := tr.start(ctx, c)
				return err
			}), "Defer does not go with an optimizer that is no optim.Partial")
			continue
		}
		_, got := tr.everywhere(t, 2)
		require.Equal(t, want, got, name)
	}
}

// TestDeferredOverflows: steps that a loss scale skips are skipped, also when the
// overflow was in what is still on its way.
func TestDeferredOverflows(t *testing.T) {
	for _, level := range []amp.Level{amp.O2, amp.O3} {
		s := scaled{model: mlpConfig, optimizer: "adamw", level: amp.Config{Level: level}, exact: true, steps: allOrders, data: newSamples(8, 1, 4)}
		s.spoil = func(step int, m Micro, b Batch) {
			if step%4 == 0 && m.Index == 2 {
				b.Input.F32()[1] = 1e30
			}
		}
		var want, got string
		run := func(result *string) {
			require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
				hash, err := s.run(ctx, c)
				if c.Rank() == 0 {
					*result = hash
				}
				return err
			}))
		}
		run(&want)
		s.late = true
		run(&got)
		require.Equal(t, want, got, "%v", level)
	}
}

// TestDeferredFreezing: what is frozen between two steps does not miss the update
// that is on its way, nor get one that it should not.
func TestDeferredFreezing(t *testing.T) {
	for _, cfg := range []FusionConfig{{}, {Deterministic: true}, {Wire: Compression{Format: "int8"}}} {
		cfg.ThresholdMB, cfg.FirstMB = 0.0001, 0.0001
		th := thaw{cfg: cfg, steps: allOrders, late: true, freeze: func(_, step int, params []*nn.Param) {
			params[0].Frozen = step >= 1 && step < 5 || step == 8
			params[3].Frozen = step%3 == 1
		}}
		want, errs := th.onRanks(t, 2)
		require.NoError(t, errors.Join(errs...))
		th.cfg.Defer = true
		got, errs := th.onRanks(t, 2)
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, want, got)
	}
}

// TestDeferredUnused: a parameter that no forward pass uses gets its update, which
// is zeros and decay, before the next backward pass.
func TestDeferredUnused(t *testing.T) {
	run := func(late bool) (hash string) {
		require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
			dev, set := naive.New(), newSamples(8, 1, 2)
			used := []nn.Block{nn.NewSeq("all", nn.Flatten{}, linear("a", 4, 10))}
			all := append([]nn.Block{nn.NewSeq("never", linear("b", 3, 5))}, used...)
			if err := nn.Materialize(dev, all, 1); err != nil {
				return err
			}
			opt, _ := optim.New(optim.Config{Name: "nesterov", Momentum: 0.9, WeightDecay: 0.1})
			g, err := NewGradFusion(ctx, []Stage{{Blocks: all, Comm: c}}, opt, FusionConfig{Device: dev, FindUnused: true, Defer: late, FirstMB: 0.0001})
			if err != nil {
				return err
			}
			defer g.Close()
			r := rankInStep{g: g, comm: c, tape: nn.NewTape(dev), all: used, set: set}
			for range allOrders {
				for m := range g.Micros(8, 2) {
					if err := r.plain(m); err != nil {
						return err
					}
				}
				if err := errors.Join(g.Wait(ctx), g.Step(0.1)); err != nil {
					return err
				}
			}
			if err := g.Complete(ctx); err != nil {
				return err
			}
			if c.Rank() == 0 {
				hash = Hash(Params(nn.Params(all)))
			}
			return nil
		}))
		return hash
	}
	require.Equal(t, run(false), run(true))
}

// TestDeferredFailureSurfaces: a rank that dies is an error of the next thing that
// needs its sums, which says of which step they are.
func TestDeferredFailureSurfaces(t *testing.T) {
	const timeout = 20 * time.Second
	late := 0
	for after := 100; after < 220; after += 5 {
		synctest.Test(t, func(t *testing.T) {
			fault, err := faulty.Parse(fmt.Sprintf("rank=1 kind=kill after=%d", after))
			require.NoError(t, err)
			tr := trial{model: mlpConfig, micro: 4, steps: 50, data: newSamples(12, 1, 4), fusion: FusionConfig{Defer: true, ThresholdMB: 0.0005, FirstMB: 0.0005}}
			start := time.Now()
			errs := make([]error, 3)
			var running sync.WaitGroup
			for r, transport := range inproc.New(3) {
				running.Go(func() {
					transport := faulty.Wrap(transport, faulty.Config{Faults: []faulty.Fault{fault}})
					c := collective.NewGroup(transport, collective.GroupConfig{Name: "world", Timeout: timeout})
					_, _, errs[r] = tr.run(t.Context(), c, naive.New())
					_ = errors.Join(c.Close(), transport.Close())
				})
			}
			running.Wait()
			require.LessOrEqual(t, time.Since(start), 2*timeout)
			for _, rank := range []int{0, 2} {
				var peer *collective.PeerError
				require.ErrorAs(t, errs[rank], &peer, "rank %d", rank)
				require.ErrorContains(t, errs[rank], "step ", "rank %d", rank)
				var e *LateError
				if !errors.As(errs[rank], &e) {
					continue
				}
				late++
				require.Positive(t, e.Step)
				require.Contains(t, e.Bucket, "bucket ")
				require.Contains(t, e.Error(), e.Bucket)
				require.Contains(t, e.Error(), fmt.Sprintf("of step %d, which went on beside the next step", e.Step))
				require.Equal(t, 1, strings.Count(e.Error(), e.Bucket), "%v", e)
				if strings.Contains(errs[rank].Error(), "forward pass") {
					require.ErrorContains(t, errs[rank], fmt.Sprintf("step %d, forward pass", e.Step+1))
				}
			}
		})
	}
	require.Positive(t, late, "no sum of an earlier step has failed")
}
