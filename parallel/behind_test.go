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

// Messages that take a quarter of a pass travel while ranks compute: a step takes
// what Simulate says when each costs so much once, on its way.
func TestMessagesTravelBehindComputation(t *testing.T) {
	const ranks, micros, hop = 4, 8, 0.25
	for _, name := range schedule.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := schedule.New(name, ranks, 2, micros)
				require.NoError(t, err)
				timing, err := s.Simulate(schedule.Costs{Hop: hop})
				require.NoError(t, err)
				want := time.Duration(timing.Span * float64(cost))
				for rank, span := range sleepers(name, len(s.Owners()), 2*micros).spans(t, time.Duration(hop*float64(cost))) {
					require.Equal(t, want, span, "rank %d", rank)
				}
			})
		})
	}
}

// slowValues takes a fixed time for what travels between the stages of sleepers,
// which is longer than what ends a step.
type slowValues struct {
	collective.Transport
	delay time.Duration
}

// Hosts says that each rank has a host of its own: what is slow is the way between.
func (s slowValues) Hosts() (out [][]int) {
	for r := range s.Size() {
		out = append(out, []int{r})
	}
	return out
}

func (s slowValues) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) >= 512 {
		time.Sleep(s.delay) // the synctest clock
	}
	return s.Transport.Send(ctx, to, tag, b)
}

func (s slowValues) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, s, to, tag, stage, fill)
}

// sleepers is a training on four ranks of a model whose stages take their cost.
func sleepers(name string, stages, samples int) pipelined {
	const width = 64
	set := newSamples(samples, 1, 8)
	set.shape = nn.Plain(samples, width)
	return pipelined{name: name, ranks: 4, columns: 1, virtual: 2, samples: samples, micro: 2, batch: set.batch, loss: crossEntropy,
		build: func() (out []nn.Block, err error) {
			for i := range stages {
				name := fmt.Sprint("b", i)
				out = append(out, sleeping{nn.NewSeq(name, linear(name, width, width)), takeCost})
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
			p.around = func(_ []Stage, step func() error) error {
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
