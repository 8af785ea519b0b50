package parallel

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// An error names the step, the rank and the micro-batch by its index among all
// ranks', on all ranks.
func TestExecutorSaysWhereItFailed(t *testing.T) {
	errEnd := errors.New("the data end here")
	for _, c := range []struct {
		name string
		feed func(b Batch, m Micro) (Batch, error)
		want string
	}{
		{"data", func(b Batch, m Micro) (Batch, error) {
			if m.Index == 3 {
				return Batch{}, errEnd
			}
			return b, nil
		}, "step 1, rank 1: forward pass of micro-batch 3: the data end here"},
		{"label", func(b Batch, m Micro) (Batch, error) {
			if m.Index == 3 {
				b.Target = device.FromI32([]int32{10, 0})
			}
			return b, nil
		}, "step 1, rank 1: forward pass of micro-batch 3: device: row 0 has label 10, outside of 0..9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			errs := make([]error, 2)
			err := world(t.Context(), 2, func(ctx context.Context, comm collective.Comm) error {
				dev, set := naive.New(), newSamples(8, 1, 2)
				blocks := []nn.Block{nn.NewSeq("fc", nn.Flatten{}, nn.NewLinear("fc", 4, 10, nn.LinearConfig{}))}
				if err := nn.Materialize(dev, blocks, 1); err != nil {
					return err
				}
				opt, err := optim.New(optim.Config{Name: "sgd"})
				if err != nil {
					return err
				}
				g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt, FusionConfig{Device: dev})
				if err != nil {
					return err
				}
				e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
					Feed: func(_ context.Context, m Micro) (Batch, error) { return c.feed(set.batch(m), m) }})
				errs[comm.Rank()] = e.Step(ctx, 8, 2)
				return g.Close()
			})
			require.NoError(t, err)
			require.EqualError(t, errs[1], c.want)
			require.EqualError(t, errs[0], c.want, "the other rank is told")
		})
	}
}

func TestExecutorRunsWholeSteps(t *testing.T) {
	gradients(t, mlpConfig, 1, func(ctx context.Context, c collective.Comm, g *GradFusion, m *models.Model, s samples) error {
		e := NewExecutor(ExecutorConfig{Fusion: g, Device: naive.New(), Loss: crossEntropy,
			Feed: func(_ context.Context, m Micro) (Batch, error) { return s.batch(m), nil }})
		require.ErrorIs(t, g.NoSync(func() error { return e.Step(ctx, len(s.y), 4) }), errWholeStep)
		return e.Step(ctx, len(s.y), 4)
	})
}
