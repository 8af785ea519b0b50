package parallel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// world runs f once for each of n ranks, side by side, and returns the errors of
// all: which comes first depends on the moment, as a rank that leaves is an error
// of those that wait for it.
func world(ctx context.Context, n int, f func(ctx context.Context, c collective.Comm) error) error {
	return onTransports(ctx, inprocRanks(n), f)
}

// onTransports is world with transports that exist; it closes them.
func onTransports(ctx context.Context, transports []collective.Transport, f func(ctx context.Context, c collective.Comm) error) error {
	var running sync.WaitGroup
	errs := make([]error, len(transports))
	for r, tr := range transports {
		running.Go(func() {
			c := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
			errs[r] = errors.Join(f(ctx, c), c.Close(), tr.Close())
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// samples are fixed random images and labels.
type samples struct {
	shape nn.Shape
	x     []float32
	y     []int32
}

func newSamples(n, channels, side int) samples {
	r := rand.New(rand.NewPCG(7, 7))
	s := samples{shape: nn.Plain(n, channels, side, side), x: make([]float32, n*channels*side*side), y: make([]int32, n)}
	for i := range s.x {
		s.x[i] = float32(r.NormFloat64())
	}
	for i := range s.y {
		s.y[i] = int32(r.IntN(10))
	}
	return s
}

func (s samples) batch(m Micro) Batch {
	n := s.shape.Features()
	shape := s.shape
	shape.Dims[0] = m.Samples
	return Batch{Input: device.FromF32(s.x[m.Lo*n : m.Hi*n]), Shape: shape, Target: device.FromI32(s.y[m.Lo:m.Hi])}
}

func crossEntropy(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
	return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{})
}

// trial is a small training run.
type trial struct {
	model  models.Config
	optim  optim.Config // the zero value: nesterov with decay
	fusion FusionConfig
	micro  int
	steps  int
	data   samples
}

var mlpConfig = models.Config{Name: "mlp", Channels: 1, Height: 4, Width: 4, Classes: 10, Hidden: []int{20, 12}}
var resnetConfig = models.Config{Name: "resnet20", Channels: 3, Height: 8, Width: 8, Classes: 10, Stages: []int{1, 1}, BaseChannels: 8}

// run trains on one rank through the Executor and returns the hash of the first
// step's gradients and of everything after the last step.
func (tr trial) run(ctx context.Context, c collective.Comm, dev device.Device) (first, last string, err error) {
	m, err := models.New(tr.model)
	if err != nil {
		return "", "", err
	}
	if err := nn.Materialize(dev, m.Blocks, uint64(c.Rank())); err != nil { // ranks start apart
		return "", "", err
	}
	if tr.optim.Name == "" {
		tr.optim = optim.Config{Name: "nesterov", WeightDecay: 5e-4}
	}
	opt, err := optim.New(tr.optim)
	if err != nil {
		return "", "", err
	}
	cfg := tr.fusion
	cfg.Device = dev
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
	if err != nil {
		return "", "", err
	}
	defer g.Close()
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return tr.data.batch(m), nil }})
	for range tr.steps {
		if err := e.Step(ctx, len(tr.data.y), tr.micro); err != nil {
			return "", "", err
		}
		if first == "" {
			gradients, err := g.Gradients(ctx)
			if err != nil {
				return "", "", err
			}
			first = Hash(gradients)
		}
		if err := g.Step(0.05); err != nil {
			return "", "", err
		}
	}
	state, err := g.OptimizerState()
	return first, Hash(append(append(state, Params(m.Params())...), States(nn.States(m.Blocks))...)), err
}

// everywhere runs the trial on n ranks and requires one result of all.
func (tr trial) everywhere(t *testing.T, n int) (first, last string) {
	t.Helper()
	return tr.over(t, inprocRanks(n))
}

// over is everywhere with transports that exist; it closes them.
func (tr trial) over(t *testing.T, transports []collective.Transport) (first, last string) {
	t.Helper()
	n := len(transports)
	firsts, lasts := make([]string, n), make([]string, n)
	require.NoError(t, onTransports(t.Context(), transports, func(ctx context.Context, c collective.Comm) (err error) {
		firsts[c.Rank()], lasts[c.Rank()], err = tr.run(ctx, c, naive.New())
		return err
	}))
	for r := range n {
		require.Equal(t, firsts[0], firsts[r], "gradients of rank %d of %d", r, n)
		require.Equal(t, lasts[0], lasts[r], "state of rank %d of %d", r, n)
	}
	return firsts[0], lasts[0]
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
