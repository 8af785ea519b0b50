package parallel

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// hookedGradients returns the gradients of a step of an mlp on three ranks, one of which
// has no micro-batch, under a hook, and what each rank's hook saw.
func hookedGradients(t *testing.T, deterministic bool, hook Hook) (grads map[string][]float32, seen [3][]string) {
	t.Helper()
	grads = map[string][]float32{}
	data := newSamples(4, 1, 4)
	require.NoError(t, world(t.Context(), 3, func(ctx context.Context, c collective.Comm) error {
		dev, m := naive.New(), newModel(mlpConfig)
		if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
			return err
		}
		cfg := FusionConfig{Device: dev, FirstMB: 0.0005, ThresholdMB: 0.0005, Deterministic: deterministic}
		if hook != nil {
			cfg.Hook = func(b Bucket) *collective.Work {
				seen[c.Rank()] = append(seen[c.Rank()], b.Label)
				return hook(b)
			}
		}
		opt, _ := optim.New(optim.Config{Name: "sgd"})
		g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := manual(2, true)(ctx, c, g, m, data); err != nil {
			return err
		}
		list, err := g.Gradients(ctx)
		if err != nil || c.Rank() != 0 {
			return err
		}
		for _, n := range list {
			grads[n.Name] = append([]float32(nil), n.Buf.F32()...)
		}
		return nil
	}))
	require.Equal(t, seen[0], seen[1])
	require.Equal(t, seen[0], seen[2])
	return grads, seen
}

// A hook may follow the sum on a goroutine of its own.
func TestHookFollowsTheSum(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		var owner sync.WaitGroup
		want, _ := hookedGradients(t, deterministic, nil)
		got, seen := hookedGradients(t, deterministic, func(b Bucket) *collective.Work {
			sum := b.Sum()
			w, complete := collective.NewWork()
			owner.Go(func() {
				err := sum.Wait(context.Background())
				if err == nil {
					for i := range b.Gradient.F32() {
						b.Gradient.F32()[i] *= 2
					}
				}
				complete(err)
			})
			return w
		})
		owner.Wait()
		require.Greater(t, len(seen[0]), 2)
		for name, w := range want {
			for i := range w {
				w[i] *= 2 // exactly
			}
			require.Equal(t, w, got[name], name)
		}
	}
}

// A hook may bring a sum of its own.
func TestHookReplacesTheSum(t *testing.T) {
	own := func(b Bucket) *collective.Work {
		return b.Comm.Start(context.Background(), collective.Call{Kind: plan.AllReduce, In: b.Gradient, Label: "own sum of " + b.Label})
	}
	want, _ := hookedGradients(t, false, nil)
	got, _ := hookedGradients(t, false, own)
	require.Equal(t, want, got)
}

func TestHookHasToSumWhereSumsAreNoAllReduce(t *testing.T) {
	done, complete := collective.NewWork()
	complete(nil)
	for _, cfg := range []FusionConfig{{Deterministic: true}, {Shard: true}} {
		cfg.Hook = func(Bucket) *collective.Work { return done }
		_, err := stepsOf(t, 2, cfg, func() []nn.Block {
			return newModel(models.Config{Name: "mlp", Channels: 1, Height: 1, Width: 16, Classes: 10}).Blocks
		})
		require.ErrorIs(t, err, ErrHook)
		require.ErrorContains(t, err, "it did not call Sum")
	}
	_, err := stepsOf(t, 1, FusionConfig{LocalSGD: 1, Hook: func(Bucket) *collective.Work { return done }}, func() []nn.Block { return nil })
	require.ErrorContains(t, err, "Hook does not go with")
}
