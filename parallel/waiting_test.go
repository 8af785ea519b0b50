package parallel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// What a rank waits until the peer has computed is the schedule's idle time, and what
// it waits from then on is the message's: both as the simulation has them when each
// message takes a quarter or a whole pass.
func TestWaitsAreTheSchedulesOrTheMessages(t *testing.T) {
	const ranks, micros = 4, 8
	for _, name := range []string{"1f1b", "gpipe", "zb-h1", "interleaved", "zb-v"} {
		for _, hop := range []float64{0, 0.25, 1} {
			if hop > 0.25 && name != "1f1b" && name != "gpipe" && name != "zb-h1" {
				continue // messages of several stages would queue
			}
			synctest.Test(t, func(t *testing.T) {
				s, err := schedule.New(name, ranks, 2, micros)
				require.NoError(t, err)
				timing, err := s.Simulate(schedule.Costs{Hop: hop})
				require.NoError(t, err)
				p := sleepers(name, len(s.Owners()), 2*micros)
				got := p.waits(t, time.Duration(hop*float64(cost)))
				for rank := range ranks {
					bubble, exposed := waitsOf(s, timing, rank)
					require.Equal(t, [2]float64{bubble, exposed}, got[rank], "%s, messages of %g, rank %d", name, hop, rank)
				}
			})
		}
	}
}

// waitsOf is what a rank of a simulation waits for computations and for messages.
func waitsOf(s schedule.Schedule, timing schedule.Timing, rank int) (bubble, exposed float64) {
	owners, ends := s.Owners(), map[schedule.Action]float64{}
	for r, list := range s {
		for i, a := range list {
			if a.Kind == schedule.Backward {
				a.Kind = schedule.Input
			}
			ends[a] = timing.Ranks[r].Ends[i]
		}
	}
	clock := 0.0
	for i, a := range s[rank] {
		need := schedule.Action{Kind: schedule.Forward, Stage: a.Stage - 1, Micro: a.Micro}
		if a.Kind != schedule.Forward {
			need = schedule.Action{Kind: schedule.Input, Stage: a.Stage + 1, Micro: a.Micro}
		}
		if start := timing.Ranks[rank].Starts[i]; start > clock && owners[need.Stage] != rank {
			computed := max(ends[need], clock)
			bubble += computed - clock
			exposed += start - computed
		}
		clock = timing.Ranks[rank].Ends[i]
	}
	return bubble, exposed
}

// waits returns what each rank waits for computations and for messages in the second
// step, in units of cost; the first one agrees on shapes.
func (p pipelined) waits(t *testing.T, message time.Duration) [][2]float64 {
	p.steps = 2
	out := make([][2]float64, p.ranks)
	errs := make(chan error, p.ranks)
	for r, tr := range inproc.New(p.ranks) {
		go func() {
			p := p
			p.events = observe.NewRecorder(1 << 10)
			c := collective.NewGroup(slowValues{tr, message}, collective.GroupConfig{Name: "world"})
			err := errors.Join(p.rank(t.Context(), c, &state{tensors: map[string]Named{}}), c.Close(), tr.Close())
			p.events.Drain(func(span observe.Span) {
				took := float64(span.Duration()) / float64(cost)
				switch {
				case span.Step != 2:
				case span.Kind == observe.Bubble:
					out[r][0] += took
				case span.Kind == observe.Exposed && span.Name == waitMessage:
					out[r][1] += took
				}
			})
			errs <- err
		}()
	}
	for range p.ranks {
		require.NoError(t, <-errs)
	}
	return out
}

// An executor knows what its actions take, whatever it waits for between them.
func TestActionTimesAreThoseOfTheStages(t *testing.T) {
	for _, name := range schedule.Names() {
		synctest.Test(t, func(t *testing.T) {
			const ranks = 3
			var seen [ranks][]ActionTimes
			p := sleeper{name: name, ranks: ranks, virtual: 2, micros: 5, pause: takeCost, times: func(rank int, list []ActionTimes) { seen[rank] = list }}
			require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
				_, err := p.run(ctx, c, 2)
				return err
			}))
			s, err := schedule.New(name, ranks, 2, 5)
			require.NoError(t, err)
			for rank, list := range s {
				stages := map[int]*ActionTimes{}
				for _, a := range list {
					if a.Kind > schedule.Weight {
						continue
					}
					if stages[a.Stage] == nil {
						stages[a.Stage] = &ActionTimes{Stage: a.Stage}
					}
					switch w := stages[a.Stage]; a.Kind {
					case schedule.Forward:
						w.Forward = cost
					case schedule.Backward:
						w.Backward = 2 * cost
					case schedule.Input:
						w.Input = cost
					case schedule.Weight:
						w.Weight = cost
					}
				}
				require.Len(t, seen[rank], len(stages))
				for _, got := range seen[rank] {
					require.Equal(t, *stages[got.Stage], got, "%s, rank %d", name, rank)
				}
			}
		})
	}
}
