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
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// sleeper is a linear layer each of whose passes takes a fixed time, and each
// half of its backward pass.
type sleeper struct {
	*nn.Linear
	cost time.Duration
}

type sleepOp struct{ cost time.Duration }

func (o *sleepOp) BackwardInput(*nn.Tape)  { time.Sleep(o.cost) } // the synctest clock
func (o *sleepOp) BackwardWeight(*nn.Tape) { time.Sleep(o.cost) }

func (s sleeper) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	time.Sleep(s.cost)
	nn.Record[sleepOp](t).cost = s.cost
	return s.Linear.Forward(t, x)
}

// The executor idles no longer than the schedule must: with blocks that take a
// fixed time a step takes what Simulate says, which is the closed form of each
// schedule. Messages take no time, or a quarter of a pass, behind computation.
func TestIdleTimeIsTheSchedules(t *testing.T) {
	const cost, ranks, micros = 12 * time.Millisecond, 4, 8
	for _, name := range schedule.Names() {
		for _, hop := range []float64{0, 0.25} {
			t.Run(fmt.Sprintf("%s, messages take %g", name, hop), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, err := schedule.New(name, ranks, 2, micros)
					require.NoError(t, err)
					stages := len(s.Owners())
					each := cost * ranks / time.Duration(stages) // the model is the same, cut in more stages
					timing, err := s.Simulate(schedule.Costs{Hop: hop})
					require.NoError(t, err)
					want := time.Duration(timing.Span * float64(each))
					for rank, span := range sleepers(name, stages, 2*micros, each).spans(t, time.Duration(hop*float64(each))) {
						require.Equal(t, want, span, "rank %d", rank)
					}
					busy := timing.Ranks[0].Busy * float64(each)
					switch {
					case hop > 0:
					case name == "gpipe" || name == "1f1b":
						require.InDelta(t, float64(ranks-1)/(micros+ranks-1), 1-busy/float64(want), 1e-9)
					case name == "interleaved":
						require.InDelta(t, float64(ranks-1)/(2*micros+ranks-1), 1-busy/float64(want), 1e-9)
					}
				})
			})
		}
	}
}

// slowValues takes a fixed time for what travels between the stages of sleepers,
// which is longer than what ends a step.
type slowValues struct {
	collective.Transport
	delay time.Duration
}

func (s slowValues) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) >= 512 {
		time.Sleep(s.delay) // the synctest clock
	}
	return s.Transport.Send(ctx, to, tag, b)
}

// sleepers is a training on four ranks of a model whose stages take a fixed time.
func sleepers(name string, stages, samples int, each time.Duration) pipelined {
	const width = 64
	set := newSamples(samples, 1, 8)
	set.shape = nn.Plain(samples, width)
	return pipelined{name: name, ranks: 4, columns: 1, virtual: 2, samples: samples, micro: 2, batch: set.batch, loss: crossEntropy,
		build: func() (out []nn.Block, err error) {
			for i := range stages {
				name := fmt.Sprint("b", i)
				out = append(out, nn.NewSeq(name, sleeper{linear(name, width, width), each}))
			}
			return out, nil
		}}
}

// spans returns what the second step takes on each rank; the first one agrees on
// shapes.
func (p pipelined) spans(t *testing.T, message time.Duration) []time.Duration {
	p.steps = 2
	spans := make([]time.Duration, p.ranks)
	errs := make(chan error, p.ranks)
	for r, tr := range inproc.New(p.ranks) {
		go func() {
			p := p
			p.around = func(step func() error) error {
				start := time.Now()
				err := step()
				spans[r] = time.Since(start)
				return err
			}
			c := collective.NewGroup(slowValues{tr, message}, collective.GroupConfig{Name: "world"})
			errs <- errors.Join(p.rank(t.Context(), c, &state{tensors: map[string]Named{}}), c.Close(), tr.Close())
		}()
	}
	for range p.ranks {
		require.NoError(t, <-errs)
	}
	return spans
}
