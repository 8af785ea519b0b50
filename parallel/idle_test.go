package parallel

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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

// sleeping is a block that takes its cost, on the clock of synctest: what a rank does
// besides takes no time there.
type sleeping struct{ nn.Block }

func (b sleeping) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	nn.Record[sleepingOp](t)
	<-time.After(cost)
	return b.Block.Forward(t, in)
}

type sleepingOp struct{ _ int }

func (*sleepingOp) BackwardInput(*nn.Tape)  { <-time.After(cost) }
func (*sleepingOp) BackwardWeight(*nn.Tape) { <-time.After(cost) }

// timed runs one step of a pipeline of such stages and returns when each action
// ran, in units of cost from the first one's start.
func timed(t *testing.T, name string, ranks, virtual, micros int) (schedule.Schedule, schedule.Timing) {
	t.Helper()
	s, err := schedule.New(name, ranks, virtual, micros)
	require.NoError(t, err)
	set := newSamples(micros, 1, 2)
	p := pipelined{name: name, ranks: ranks, columns: 1, virtual: virtual, build: func() (blocks []nn.Block, err error) {
		for i := range s.Owners() {
			blocks = append(blocks, sleeping{nn.NewSeq(fmt.Sprint("fc", i), nn.Flatten{}, nn.NewLinear(fmt.Sprint("fc", i), 4, 4, nn.LinearConfig{}))})
		}
		return blocks, nil
	}}
	var mu sync.Mutex
	spans := make([]map[string]observe.Span, ranks)
	err = world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		events := observe.NewRecorder(1 << 12)
		m, err := NewMesh(ctx, c, MeshConfig{Pipeline: ranks})
		if err != nil {
			return err
		}
		dev := naive.New()
		stages, err := p.stagesOf(ctx, m, dev, s.Owners())
		if err != nil {
			return err
		}
		opt, err := optim.New(optim.Config{Name: "sgd"})
		if err != nil {
			return err
		}
		g, err := NewGradFusion(ctx, stages, opt, FusionConfig{Device: dev, World: c})
		if err != nil {
			return err
		}
		e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Pipe: m.Column, Schedule: p.schedule, Events: events,
			Loss: func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
				return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{})
			},
			Feed: func(_ context.Context, m Micro) (Batch, error) {
				b := set.batch(m)
				b.Target = device.FromI32(make([]int32, m.Samples))
				return b, nil
			}})
		if err := errors.Join(e.Step(ctx, micros, 1), g.Step(0.1)); err != nil {
			return err
		}
		own := map[string]observe.Span{}
		events.Drain(func(span observe.Span) {
			if span.Lane == "schedule" {
				own[span.Name] = span
			}
		})
		mu.Lock()
		spans[c.Rank()] = own
		mu.Unlock()
		return errors.Join(g.Close(), m.Close())
	})
	require.NoError(t, err)
	return s, timingOf(t, s, spans)
}

// timingOf puts spans in the form of a simulation.
func timingOf(t *testing.T, s schedule.Schedule, spans []map[string]observe.Span) (out schedule.Timing) {
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
