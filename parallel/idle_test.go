package parallel

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

var updatePictures = flag.Bool("update", false, "draw the pictures of docs anew")

// cost is what a stage takes for each of F, I and W.
const cost = time.Millisecond

// takeCost does so on the clock of synctest.
func takeCost() { <-time.After(cost) }

// sleeping is a block that takes its cost by pause.
type sleeping struct {
	nn.Block
	pause func()
}

func (b sleeping) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	nn.Record[sleepingOp](t).pause = b.pause
	b.pause()
	return b.Block.Forward(t, in)
}

type sleepingOp struct{ pause func() }

func (o *sleepingOp) BackwardInput(*nn.Tape)  { o.pause() }
func (o *sleepingOp) BackwardWeight(*nn.Tape) { o.pause() }

// sleeper is a pipeline whose stages are a sleeping block each.
type sleeper struct {
	name                   string // of the schedule
	ranks, virtual, micros int
	pause                  func()
	times                  func(rank int, list []ActionTimes) // told those of each step
}

// run is a rank of it, which returns the spans of each step by their actions.
func (p sleeper) run(ctx context.Context, c collective.Comm, steps int) (out []map[string]observe.Span, err error) {
	s, err := schedule.New(p.name, p.ranks, p.virtual, p.micros)
	if err != nil {
		return nil, err
	}
	set := newSamples(p.micros, 1, 2)
	model := pipelined{name: p.name, ranks: p.ranks, columns: 1, virtual: p.virtual, build: func() (blocks []nn.Block, err error) {
		for i := range s.Owners() {
			fc := nn.NewSeq(fmt.Sprint("fc", i), nn.Flatten{}, nn.NewLinear(fmt.Sprint("fc", i), 4, 4, nn.LinearConfig{}))
			blocks = append(blocks, sleeping{fc, p.pause})
		}
		return blocks, nil
	}}
	events := observe.NewRecorder(1 << 12)
	m, err := NewMesh(ctx, c, MeshConfig{Pipeline: p.ranks})
	if err != nil {
		return nil, err
	}
	dev := naive.New()
	stages, err := model.stagesOf(ctx, m, dev, s.Owners())
	if err != nil {
		return nil, err
	}
	opt, err := optim.New(optim.Config{Name: "sgd"})
	if err != nil {
		return nil, err
	}
	g, err := NewGradFusion(ctx, stages, opt, FusionConfig{Device: dev, World: c})
	if err != nil {
		return nil, err
	}
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Pipe: m.Column, Schedule: model.schedule, Events: events,
		Loss: func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
			return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{})
		},
		Feed: func(_ context.Context, m Micro) (Batch, error) {
			b := set.batch(m)
			b.Target = device.FromI32(make([]int32, m.Samples))
			return b, nil
		}})
	for range steps {
		if err := errors.Join(e.Step(ctx, p.micros, 1), g.Step(0.1)); err != nil {
			return nil, err
		}
		if p.times != nil {
			p.times(c.Rank(), e.ActionTimes(nil))
		}
		own := map[string]observe.Span{}
		events.Drain(func(span observe.Span) {
			if span.Lane == "schedule" {
				own[span.Name] = span
			}
		})
		out = append(out, own)
	}
	return out, errors.Join(g.Close(), m.Close())
}

// timed runs one step of a pipeline of stages that take cost on the clock of
// synctest, where what a rank does besides takes no time, and returns when each action
// ran, in units of cost from the first one's start.
func timed(t *testing.T, name string, ranks, virtual, micros int) (schedule.Schedule, schedule.Timing) {
	t.Helper()
	s, err := schedule.New(name, ranks, virtual, micros)
	require.NoError(t, err)
	p := sleeper{name: name, ranks: ranks, virtual: virtual, micros: micros, pause: takeCost}
	spans := make([]map[string]observe.Span, ranks)
	err = world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		own, err := p.run(ctx, c, 1)
		if err == nil {
			spans[c.Rank()] = own[0]
		}
		return err
	})
	require.NoError(t, err)
	return s, timingOf(t, s, spans, cost)
}

// timingOf puts spans in the form of a simulation.
func timingOf(t testing.TB, s schedule.Schedule, spans []map[string]observe.Span, cost time.Duration) (out schedule.Timing) {
	first := spans[0]["0F0"].Start
	unit := func(at int64) float64 { return float64(at-first) / float64(cost) }
	for rank, list := range s {
		r := schedule.RankTiming{}
		for _, a := range list {
			if a.Kind > schedule.Weight {
				r.Starts, r.Ends = append(r.Starts, 0), append(r.Ends, 0)
				continue
			}
			span, ran := spans[rank][a.String()]
			require.True(t, ran, "rank %d did not run %s", rank, a)
			r.Starts, r.Ends = append(r.Starts, unit(span.Start)), append(r.Ends, unit(span.End))
			r.Busy += unit(span.End) - unit(span.Start)
			out.Span = max(out.Span, unit(span.End))
		}
		out.Ranks = append(out.Ranks, r)
	}
	for i := range out.Ranks {
		out.Ranks[i].Idle = out.Span - out.Ranks[i].Busy
	}
	return out
}

// An executor wastes nothing: ranks are idle for as long as the schedule's
// simulation says and its closed form, not a millisecond longer.
func TestRanksAreIdleAsSimulated(t *testing.T) {
	for _, name := range schedule.Names() {
		for _, c := range [][3]int{{4, 2, 8}, {2, 2, 3}, {3, 3, 7}} {
			synctest.Test(t, func(t *testing.T) {
				s, got := timed(t, name, c[0], c[1], c[2])
				want, err := s.Simulate(schedule.Costs{})
				require.NoError(t, err)
				require.InDelta(t, want.Span, got.Span, 0.01, "%s %v", name, c)
				for rank := range s {
					require.InDelta(t, want.Ranks[rank].Idle, got.Ranks[rank].Idle, 0.01, "%s %v, rank %d", name, c, rank)
				}
				if name == "1f1b" && c[0] == 4 || name == "zb-h1" && c[0] == 4 {
					requirePicture(t, s, got, name)
				}
			})
		}
	}
}

// requirePicture compares what ran with the picture in docs.
func requirePicture(t *testing.T, s schedule.Schedule, got schedule.Timing, name string) {
	var picture bytes.Buffer
	require.NoError(t, s.WriteSVG(&picture, got))
	path := filepath.Join("..", "docs", "trace-"+name+".svg")
	if *updatePictures {
		require.NoError(t, os.WriteFile(path, picture.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), picture.String(), "go test ./parallel -update draws it anew")
}
