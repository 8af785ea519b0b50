package parallel

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// sentBytes sums the gradient of a table of 30,000 x 192, of which each of two
// ranks looks up the same 2,000 vectors, and returns the bytes that rank 0 sends.
func sentBytes(t *testing.T, sparse bool) (sent int64) {
	t.Helper()
	const count, width, touched = 30000, 192, 2000
	recorders := []*observe.Recorder{observe.NewRecorder(1 << 10), observe.NewRecorder(1 << 10)}
	require.NoError(t, recorded(t.Context(), recorders, func(ctx context.Context, c collective.Comm) error {
		dev, err := cpu.New(cpu.Config{Threads: 1})
		if err != nil {
			return err
		}
		defer dev.Close()
		table := nn.NewEmbedding("table", count, width)
		table.Weight.Sparse, table.Weight.Init = sparse, nn.Init{}
		blocks := []nn.Block{nn.NewSeq("table", table)}
		if err := nn.Materialize(dev, blocks, 1); err != nil {
			return err
		}
		opt, _ := optim.New(optim.Config{Name: "sgd"})
		g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, FusionConfig{Device: dev})
		if err != nil {
			return err
		}
		defer g.Close()
		ids := make([]int32, touched)
		for i := range ids {
			ids[i] = int32(i * (count / touched))
		}
		tape := nn.NewTape(dev)
		for m := range g.Micros(2*touched, touched) {
			tape.Begin(nn.Pass{Training: true, Micro: m.Index})
			y := nn.Forward(tape, blocks, tape.Input(device.FromI32(ids), nn.Plain(touched), false))
			loss := tape.CrossEntropy(y[0], device.FromI32(make([]int32, touched)), nn.CrossEntropyConfig{})
			if err := g.Backward(tape, loss, m); err != nil {
				return err
			}
		}
		if err := g.Wait(ctx); err != nil {
			return err
		}
		return g.Step(0.1)
	}))
	recorders[0].Drain(func(s observe.Span) {
		if s.Kind == observe.Call {
			sent += s.Bytes
		}
	})
	return sent
}

// recorded is world with a recorder for each rank.
func recorded(ctx context.Context, to []*observe.Recorder, f func(context.Context, collective.Comm) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for r, tr := range inproc.New(len(to)) {
		g.Go(func() error {
			c := collective.NewGroup(tr, collective.GroupConfig{Name: "world", Events: to[r]})
			return errors.Join(f(ctx, c), c.Close(), tr.Close())
		})
	}
	return g.Wait()
}

func TestSparseGradientsSendLittle(t *testing.T) {
	dense, sparse := sentBytes(t, false), sentBytes(t, true)
	t.Logf("sent by a rank in a step: %d bytes dense, %d sparse: %.4f of it", dense, sparse, float64(sparse)/float64(dense))
	require.Less(t, float64(sparse), 0.15*float64(dense))
}
