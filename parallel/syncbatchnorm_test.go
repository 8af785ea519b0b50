package parallel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// normalised is what a step of a network with BatchNorms leaves on rank 0.
type normalised struct {
	loss  float64
	grads map[string][]float32
	state map[string][]float32
}

// normStep trains one step on ranks in groups of statistics, on samples cut in
// micro-batches of that size.
func normStep(t *testing.T, ranks, samples, micro int, groups [][]int) normalised {
	t.Helper()
	out := normalised{grads: map[string][]float32{}, state: map[string][]float32{}}
	set := newSamples(samples, 3, 8)
	require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		dev, m := naive.New(), newModel(resnetConfig)
		if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
			return err
		}
		cfg := FusionConfig{Device: dev, FirstMB: 0.001}
		for _, group := range groups {
			sub, err := c.Sub(ctx, group)
			if err != nil {
				return err
			}
			if sub != nil {
				cfg.SyncBatchNorm = sub
				defer sub.Close()
			}
		}
		opt, _ := optim.New(optim.Config{Name: "sgd"})
		g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := manual(micro, true)(ctx, c, g, m, set); err != nil || c.Rank() != 0 {
			return err
		}
		out.loss = g.Outcome().Loss
		gradients, err := g.Gradients(ctx)
		if err != nil {
			return err
		}
		for _, n := range gradients {
			out.grads[n.Name] = slices.Clone(n.Buf.F32())
		}
		for _, n := range States(nn.States(m.Blocks)) {
			out.state[n.Name] = slices.Clone(n.Buf.F32())
		}
		return nil
	}))
	return out
}

func newModel(c models.Config) *models.Model {
	m, err := models.New(c)
	if err != nil {
		panic(err)
	}
	return m
}

func everyRank(n int) (out []int) {
	for r := range n {
		out = append(out, r)
	}
	return out
}

// With one micro-batch a rank, of whatever size, or none, all of the step is one group:
// loss, gradients and running statistics are those of one rank with one batch.
func TestSyncBatchNormIsOneBigBatch(t *testing.T) {
	for _, c := range []struct{ ranks, samples, micro int }{{2, 12, 6}, {2, 9, 5}, {3, 7, 3}, {4, 7, 2}, {5, 6, 2}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			want := normStep(t, 1, c.samples, c.samples, nil)
			got := normStep(t, c.ranks, c.samples, c.micro, [][]int{everyRank(c.ranks)})
			require.InDelta(t, want.loss, got.loss, 1e-6)
			requireNear(t, want.grads, got.grads, 1e-5)
			requireNear(t, want.state, got.state, 1e-5)
			apart := normStep(t, c.ranks, c.samples, c.micro, nil)
			require.NotEqual(t, want.loss, apart.loss)
		})
	}
}

// requireNear compares within a share of each tensor's rms: BatchNorm divides by
// deviations of few values, which magnifies rounding by about ten.
func requireNear(t *testing.T, want, got map[string][]float32, share float64) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	for name, w := range want {
		var diff, norm float64
		for i := range w {
			d := float64(got[name][i]) - float64(w[i])
			diff += d * d
			norm += float64(w[i]) * float64(w[i])
		}
		require.LessOrEqual(t, diff, norm*share*share+1e-20, name)
	}
}

// Groups of ranks share statistics among themselves only: two groups of two
// ranks compute what two ranks do whose micro-batches are as large as a group's.
func TestSyncBatchNormOfSubGroups(t *testing.T) {
	want := normStep(t, 2, 12, 6, nil)
	got := normStep(t, 4, 12, 3, [][]int{{0, 1}, {2, 3}})
	require.InDelta(t, want.loss, got.loss, 1e-6)
	requireNear(t, want.grads, got.grads, 1e-5)
	requireNear(t, want.state, got.state, 1e-5)
}

// Ranks with fewer micro-batches than others, or none, take part without values.
// Five micro-batches over two ranks are the groups {0, 3}, {1, 4} and {2}.
func TestSyncBatchNormOfUnevenRuns(t *testing.T) {
	for _, c := range []struct{ ranks, samples, micro int }{{2, 10, 2}, {3, 10, 2}, {5, 6, 2}, {4, 3, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			a := normStep(t, c.ranks, c.samples, c.micro, [][]int{everyRank(c.ranks)})
			b := normStep(t, c.ranks, c.samples, c.micro, [][]int{everyRank(c.ranks)})
			require.Equal(t, a, b, "every run has the same bits")
		})
	}
}

// A rank that runs another layer learns of it, as does the other.
func TestSyncBatchNormOfOtherLayersIsAnError(t *testing.T) {
	errs := make([]error, 2)
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		a := &nn.Running{Name: "first.bn", Channels: 2}
		b := &nn.Running{Name: "second.bn", Channels: 3}
		n := newNormGroup(ctx, c, []*nn.Running{a, b})
		if c.Rank() == 0 {
			_, errs[0] = n.Moments("first.bn", 4, make([]float64, 2), make([]float64, 2))
		} else {
			errs[1] = n.Sums("second.bn", make([]float64, 6))
		}
		return nil
	}))
	for _, err := range errs {
		require.ErrorIs(t, err, errNorms)
		require.ErrorContains(t, err, "rank 0 is in the forward pass of first.bn, rank 1 in the backward pass of second.bn")
	}
}

func TestSyncBatchNormIsRefusedInDeterministicMode(t *testing.T) {
	require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
		opt, _ := optim.New(optim.Config{})
		_, err := NewGradFusion(ctx, []Stage{{Comm: c}}, opt, FusionConfig{Device: naive.New(), Deterministic: true, SyncBatchNorm: c})
		require.ErrorContains(t, err, "SyncBatchNorm does not go with Deterministic")
		return nil
	}))
}
