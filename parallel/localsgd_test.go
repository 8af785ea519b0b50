package parallel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// localRank is one rank's model under plain SGD without momentum.
type localRank struct {
	model *models.Model
	g     *GradFusion
}

func newLocalRank(ctx context.Context, c collective.Comm, model models.Config, cfg FusionConfig) (*localRank, error) {
	dev := naive.New()
	m, err := models.New(model)
	if err != nil {
		return nil, err
	}
	if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
		return nil, err
	}
	opt, err := optim.New(optim.Config{Name: "sgd"})
	if err != nil {
		return nil, err
	}
	cfg.Device = dev
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
	return &localRank{m, g}, err
}

func (r *localRank) values() map[string][]float32 {
	out := saved{}
	keep(out, append(Params(r.model.Params()), States(nn.States(r.model.Blocks))...))
	return out
}

// TestLocalSGDAveragesWhatRanksTrainApart compares with the dumb way: each rank's
// samples trained by a process of its own, and the mean of the results.
func TestLocalSGDAveragesWhatRanksTrainApart(t *testing.T) {
	const ranks, each, steps = 2, 6, 3
	set := newSamples(ranks*each, 3, 8)
	apart := make([]map[string][]float32, ranks)
	for r := range ranks {
		require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
			alone, err := newLocalRank(ctx, c, resnetConfig, FusionConfig{})
			if err != nil {
				return err
			}
			defer alone.g.Close()
			n := set.shape.Features()
			own := samples{shape: set.shape, x: set.x[r*each*n:], y: set.y[r*each : (r+1)*each]}
			own.shape.Dims[0] = each
			for range steps {
				if err := manual(3, true)(ctx, c, alone.g, alone.model, own); err != nil {
					return err
				}
				if err := alone.g.Step(0.1); err != nil {
					return err
				}
			}
			apart[r] = alone.values()
			return nil
		}))
	}
	for _, k := range []int{3, 1000} { // the second is asked for
		require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
			rank, err := newLocalRank(ctx, c, resnetConfig, FusionConfig{LocalSGD: k, ThresholdMB: 0.001, NoOverlap: k == 3})
			if err != nil {
				return err
			}
			defer rank.g.Close()
			for step := range steps {
				if step+1 == steps {
					rank.g.Average()
				}
				if err := manual(3, true)(ctx, c, rank.g, rank.model, set); err != nil {
					return err
				}
				if err := rank.g.Step(0.1); err != nil {
					return err
				}
			}
			if err := rank.g.Complete(ctx); err != nil {
				return err
			}
			for name, got := range rank.values() {
				for i, v := range got {
					// BatchNorm statistics of the last step come from all ranks already, so
					// theirs are compared where they are equal: between ranks.
					if want := (apart[0][name][i] + apart[1][name][i]) / 2; v != want && !running(name) {
						return fmt.Errorf("%s[%d] is %g, the mean is %g", name, i, v, want)
					}
				}
			}
			return rank.g.verify(ctx)
		}))
	}
}

func running(name string) bool {
	return len(name) > 8 && (name[len(name)-4:] == "mean" || name[len(name)-3:] == "var")
}

// counting counts calls.
type counting struct {
	collective.Comm
	calls int
}

func (c *counting) Start(ctx context.Context, call collective.Call) *collective.Work {
	c.calls++
	return c.Comm.Start(ctx, call)
}

// TestLocalSGDSendsNothingBetween: steps between start no call, ranks without
// samples included, and votes wait for the next average.
func TestLocalSGDSendsNothingBetween(t *testing.T) {
	require.NoError(t, world(t.Context(), 3, func(ctx context.Context, c collective.Comm) error {
		comm := &counting{Comm: c}
		rank, err := newLocalRank(ctx, comm, mlpConfig, FusionConfig{LocalSGD: 4, CheckEvery: 4})
		if err != nil {
			return err
		}
		defer rank.g.Close()
		set := newSamples(8, 1, 4) // two micro-batches: the last rank has none
		for step := 1; step <= 12; step++ {
			before := comm.calls
			start := rank.values()
			rank.g.Vote(1 << c.Rank())
			if err := manual(4, true)(ctx, comm, rank.g, rank.model, set); err != nil {
				return err
			}
			votes := rank.g.Outcome().Votes
			if err := rank.g.Step(0.1); err != nil {
				return err
			}
			switch {
			case step%4 == 0 && votes != 7:
				return fmt.Errorf("step %d: votes %b", step, votes)
			case step%4 != 0 && step > 1 && (comm.calls != before || votes != 0):
				return fmt.Errorf("step %d: %d calls, votes %b", step, comm.calls-before, votes)
			case step == 2 && c.Rank() == 2:
				require.Equal(t, start, rank.values())
			}
		}
		return nil
	}))
}

// A loss that is not finite in a step between is that of a micro-batch and a rank
// of the whole job.
func TestLocalSGDSaysWhoseLossIsNotFinite(t *testing.T) {
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		rank, err := newLocalRank(ctx, c, mlpConfig, FusionConfig{LocalSGD: 4})
		if err != nil {
			return err
		}
		defer rank.g.Close()
		if params := rank.model.Params(); c.Rank() == 1 {
			params[len(params)-1].Value.F32()[0] = float32(math.NaN())
		}
		err = manual(4, true)(ctx, c, rank.g, rank.model, newSamples(16, 1, 4))
		if c.Rank() == 0 {
			return err
		}
		var loss *LossError
		require.ErrorAs(t, err, &loss)
		require.Equal(t, [2]int{1, 2}, [2]int{loss.Rank, loss.Micro}, "rank 1's first micro-batch is the third")
		return nil
	}))
}

// A rank without samples reads what the others have trained, at 16 bits too.
func TestLocalSGDAverageReachesRoundedCopies(t *testing.T) {
	losses := make([][]float64, 2)
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		rank, err := newLocalRank(ctx, c, mlpConfig, FusionConfig{LocalSGD: 1})
		if err != nil {
			return err
		}
		defer rank.g.Close()
		set := newSamples(4, 1, 4) // one micro-batch: rank 1 has none
		feed := func(_ context.Context, m Micro) (Batch, error) { return set.batch(m), nil }
		e := NewExecutor(ExecutorConfig{Fusion: rank.g, Device: naive.New(), Loss: crossEntropy, Feed: feed, Precision: nn.Precision{Type: device.BF16}})
		for range 3 {
			if err := errors.Join(e.Step(ctx, 4, 4), rank.g.Step(0.5)); err != nil {
				return err
			}
			err := e.Evaluate(ctx, MicroRange(4, 4, 0, 1), feed, func(_ Micro, s nn.Score) {
				losses[c.Rank()] = append(losses[c.Rank()], s.Sum())
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, losses[0], losses[1])
}

func TestLocalSGDRefuses(t *testing.T) {
	for want, cfg := range map[string]FusionConfig{
		"Deterministic: ranks that train apart depend on how many they are":           {LocalSGD: 2, Deterministic: true},
		"Shard: ranks that train apart need all of the optimizer's state":             {LocalSGD: 2, Shard: true},
		"CheckEvery = 3, which is no multiple of 2: ranks are equal after an average": {LocalSGD: 2, CheckEvery: 3},
		"a negative number of steps":                                                  {LocalSGD: -1},
	} {
		require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
			_, err := newLocalRank(ctx, c, mlpConfig, cfg)
			require.ErrorContains(t, err, "parallel: LocalSGD does not go with "+want)
			return nil
		}))
	}
}
