package parallel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/nn"
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

// A tied parameter's gradients go to the other stage as soon as they are there: the
// last stage has them a message and two passes before the first one, which therefore
// waits for nothing; the last one waits for that and what the first one then sends.
func TestTheFirstStageNeedNotWaitForTiedGradients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sleepers("1f1b", 2, 8)
		p.ranks = 2
		p.build = func() (out []nn.Block, err error) {
			for i := range 2 {
				out = append(out, sleeping{nn.NewSeq(fmt.Sprint("b", i), linear("tied", 64, 64)), takeCost})
			}
			return out, nil
		}
		got := p.spansOf(t, cost/4, func(s observe.Span) (int, bool) { return 0, s.Name == "wait for buckets" })
		require.Equal(t, [][2]float64{{0, 0}, {2.5, 0}}, got)
	})
}

// waits returns what each rank waits for computations and for messages in the second
// step, in units of cost; the first one agrees on shapes.
func (p pipelined) waits(t *testing.T, message time.Duration) [][2]float64 {
	return p.spansOf(t, message, func(s observe.Span) (int, bool) {
		if s.Kind == observe.Bubble {
			return 0, true
		}
		return 1, s.Kind == observe.Exposed && s.Name == waitMessage
	})
}

// spansOf adds up two kinds of each rank's spans of the second step, in units of cost.
func (p pipelined) spansOf(t *testing.T, message time.Duration, kind func(observe.Span) (int, bool)) [][2]float64 {
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
				if k, counts := kind(span); counts && span.Step == 2 {
					out[r][k] += float64(span.Duration()) / float64(cost)
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
