package parallel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// pipelined is a training run of a model cut over ranks.
type pipelined struct {
	name     string // of the schedule
	ranks    int    // of a column
	columns  int
	virtual  int
	build    func() ([]nn.Block, error)
	batch    func(m Micro) Batch
	loss     Loss
	samples  int
	micro    int
	steps    int
	fusion   FusionConfig
	wire     device.Type
	recomp   bool
	paired   bool
	events   *observe.Recorder
	evaluate func(m Micro, s nn.Score)                     // after the steps
	around   func(stages []Stage, step func() error) error // runs a step
}

// state is what a run ends with, over all ranks.
type state struct {
	mu       sync.Mutex
	tensors  map[string]Named
	outcomes []Outcome
}

func (s *state) add(list []Named) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list {
		before, ok := s.tensors[t.Name]
		if ok && !slices.Equal(before.Buf.Bytes(), t.Buf.Bytes()) {
			return fmt.Errorf("two ranks end with different bits of %s", t.Name)
		}
		s.tensors[t.Name] = t
	}
	return nil
}

func (s *state) hash() string {
	var list []Named
	for _, t := range s.tensors {
		list = append(list, t)
	}
	return Hash(list)
}

// stagesOf cuts the model for this rank: each stage from a model of its own, so
// that tied parameters are copies.
func (p pipelined) stagesOf(ctx context.Context, m *Mesh, dev device.Device, owners []int) ([]Stage, error) {
	ties := map[string][]int{} // stages by parameter
	var out []Stage
	for s, owner := range owners {
		blocks, err := p.build()
		if err != nil {
			return nil, err
		}
		n, count := len(blocks), len(owners)
		own := blocks[s*n/count : (s+1)*n/count]
		for _, q := range nn.Params(own) {
			ties[q.Name] = append(ties[q.Name], s)
		}
		if owner != m.At.Pipeline {
			continue
		}
		if err := nn.Materialize(dev, own, 1); err != nil {
			return nil, err
		}
		out = append(out, Stage{Blocks: own, Comm: m.Replicas, Index: s, Tied: map[string]collective.Comm{}})
	}
	for _, name := range slices.Sorted(maps.Keys(ties)) { // in one order on all ranks
		stages := ties[name]
		if len(stages) < 2 {
			continue
		}
		var places []int
		for _, s := range stages {
			if !slices.Contains(places, owners[s]) {
				places = append(places, owners[s])
			}
		}
		if len(places) < 2 {
			continue
		}
		c, err := m.SubColumn(ctx, places)
		if err != nil {
			return nil, err
		}
		for i := range out {
			if slices.Contains(stages, out[i].Index) {
				out[i].Tied[name] = c
			}
		}
	}
	return out, nil
}

func (p pipelined) device() device.Device { return naive.New() }

func (p pipelined) schedule(micros int) (schedule.Schedule, error) {
	return schedule.New(p.name, p.ranks, p.virtual, micros)
}

func (p pipelined) rank(ctx context.Context, world collective.Comm, out *state) (err error) {
	m, err := NewMesh(ctx, world, MeshConfig{Pipeline: p.ranks})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	one, err := p.schedule(1)
	if err != nil {
		return err
	}
	dev := p.device()
	stages, err := p.stagesOf(ctx, m, dev, one.Owners())
	if err != nil {
		return err
	}
	opt, err := optim.New(optim.Config{Name: "nesterov", WeightDecay: 5e-4})
	if err != nil {
		return err
	}
	cfg := p.fusion
	cfg.Device, cfg.World, cfg.Events = dev, world, p.events
	g, err := NewGradFusion(ctx, stages, opt, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: p.loss, Pipe: m.Column, Schedule: p.schedule, Wire: p.wire,
		Recompute: p.recomp, Paired: p.paired, Seed: 3, Events: p.events,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return p.batch(m), nil }})
	return p.train(ctx, g, e, stages, out)
}

func (p pipelined) train(ctx context.Context, g *GradFusion, e *Executor, stages []Stage, out *state) error {
	for range p.steps {
		step := func() error { return e.Step(ctx, p.samples, p.micro) }
		if p.around == nil {
			p.around = func(_ []Stage, step func() error) error { return step() }
		}
		if err := p.around(stages, step); err != nil {
			return err
		}
		if err := g.Step(0.05); err != nil {
			return err
		}
		out.mu.Lock()
		out.outcomes = append(out.outcomes, g.Outcome())
		out.mu.Unlock()
	}
	if p.evaluate != nil {
		feed := func(_ context.Context, m Micro) (Batch, error) { return p.batch(m), nil }
		if err := e.Evaluate(ctx, MicroRange(p.samples, p.micro, 0, (p.samples+p.micro-1)/p.micro), feed, p.evaluate); err != nil {
			return err
		}
	}
	list, err := g.OptimizerState()
	if err != nil {
		return err
	}
	for _, s := range stages {
		list = append(append(list, Params(nn.Params(s.Blocks))...), States(nn.States(s.Blocks))...)
	}
	return out.add(list)
}

func (p pipelined) run(ctx context.Context) (*state, error) {
	out := &state{tensors: map[string]Named{}}
	err := world(ctx, p.ranks*p.columns, func(ctx context.Context, c collective.Comm) error { return p.rank(ctx, c, out) })
	return out, err
}

// images and texts are the models of the tests.
func images(config models.Config, n int) pipelined {
	set := newSamples(n, config.Channels, config.Height)
	return pipelined{samples: n, batch: set.batch, loss: crossEntropy, steps: 2, columns: 1, ranks: 1, name: "gpipe",
		build: func() ([]nn.Block, error) {
			m, err := models.New(config)
			if err != nil {
				return nil, err
			}
			return m.Blocks, nil
		}}
}

const textContext = 6

func texts(config models.Config, n int) pipelined {
	p := images(config, 1)
	p.samples, p.fusion.Targets = n, textContext
	tokens := make([]int32, n*textContext+1)
	for i := range tokens {
		tokens[i] = int32(i * i % config.Vocabulary)
	}
	p.batch = func(m Micro) Batch {
		lo, hi := m.Lo*textContext, m.Hi*textContext
		return Batch{Input: device.FromI32(tokens[lo:hi]), Shape: nn.Plain(m.Samples, textContext), Target: device.FromI32(tokens[lo+1 : hi+1])}
	}
	return p
}

// small models of at least eight blocks.
func smallModels() map[string]func(samples int) pipelined {
	return map[string]func(samples int) pipelined{
		"mlp": func(n int) pipelined {
			return images(models.Config{Name: "mlp", Channels: 1, Height: 3, Width: 3, Classes: 10, Hidden: []int{9, 8, 7, 9, 8, 7, 9}}, n)
		},
		"resnet20": func(n int) pipelined {
			return images(models.Config{Name: "resnet20", Channels: 2, Height: 4, Width: 4, Classes: 10, Stages: []int{2, 2, 2}, BaseChannels: 4}, n)
		},
		"gpt": func(n int) pipelined {
			return texts(models.Config{Name: "gpt", Vocabulary: 11, Context: textContext, Layers: 6, Heads: 2, Features: 8, Dropout: 0.1}, n)
		},
	}
}

var wholeMatrix = flag.Bool("whole", false, "run every combination of the matrices, not a sample")

// TestPipelineEqualsOneProcess is the promise: equal bits for any schedule, any
// number of ranks and columns and any number of micro-batches, the last of which
// may be smaller; tied parameters, dropout and running statistics included. By
// default each schedule meets one of the grids with each model and number.
func TestPipelineEqualsOneProcess(t *testing.T) {
	grids := [][2]int{{2, 1}, {3, 1}, {4, 1}, {2, 2}, {2, 3}}
	at := 0
	for _, model := range slices.Sorted(maps.Keys(smallModels())) {
		make := smallModels()[model]
		for _, micros := range []int{1, 3, 4, 8} {
			base := make(2*micros - 1)
			base.micro, base.fusion = 2, FusionConfig{Deterministic: true, ClipNorm: 0.5, ThresholdMB: 0.001, Targets: base.fusion.Targets}
			one, err := base.run(t.Context())
			require.NoError(t, err)
			for _, name := range schedule.Names() {
				at++
				for i, grid := range grids {
					if !*wholeMatrix && (i+at)%len(grids) > 0 {
						continue
					}
					p := base
					p.name, p.ranks, p.columns, p.virtual = name, grid[0], grid[1], 2
					t.Run(fmt.Sprintf("%s/%s/%d ranks x %d/%d micro-batches", model, name, p.ranks, p.columns, micros), func(t *testing.T) {
						got, err := p.run(t.Context())
						require.NoError(t, err)
						requireSame(t, one, got)
					})
				}
			}
		}
	}
}

func requireSame(t *testing.T, want, got *state) {
	t.Helper()
	for name, w := range want.tensors {
		require.Equal(t, w.Buf.Bytes(), got.tensors[name].Buf.Bytes(), name)
	}
	require.Equal(t, want.hash(), got.hash())
	for i, o := range got.outcomes {
		require.Contains(t, want.outcomes, o, "outcome %d", i)
	}
}
