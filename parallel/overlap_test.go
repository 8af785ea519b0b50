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
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/optim"
)

// slowTransport takes a fixed time for each message that is no header.
type slowTransport struct {
	collective.Transport
	delay time.Duration
}

func (s slowTransport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) >= 256 && len(b) != 8*4 {
		time.Sleep(s.delay) // the synctest clock: no time passes
	}
	return s.Transport.Send(ctx, to, tag, b)
}

func (s slowTransport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, s, to, tag, stage, fill)
}

// slowBlock is a linear layer whose backward pass takes a fixed time.
type slowBlock struct {
	nn.Block
	cost time.Duration
}

type slowOp struct{ cost time.Duration }

func (o *slowOp) BackwardInput(*nn.Tape)  { time.Sleep(o.cost) } // the synctest clock
func (o *slowOp) BackwardWeight(*nn.Tape) {}

func (s slowBlock) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	nn.Record[slowOp](t).cost = s.cost // recorded first, so that it runs last: after the gradient is out
	return s.Block.Forward(t, in)
}

// TestOverlapIsMeasured scripts a step: three blocks of one bucket each, whose
// backward passes take 40 ms after their gradient is complete, and a transport
// that takes 10 ms a message. The ring of two ranks needs two rounds, so a call
// takes 20 ms: those of the first two buckets hide behind the next block, the
// third behind its own block's 40 ms. Then everything again without overlap.
func TestOverlapIsMeasured(t *testing.T) {
	for _, c := range []struct {
		name      string
		noOverlap bool
		exposed   float64 // ms
	}{{"overlapped", false, 0}, {"one after the other", true, 60}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := scriptedStep(t, c.noOverlap)
				var times metrics.StepTimes
				buckets, backward := 0, []observe.Span(nil)
				for _, s := range spans {
					if s.Kind == observe.Call && s.Bytes < 1024 {
						continue // the small gather at the end of a step
					}
					times.Add(s)
					if s.Kind == observe.Call {
						buckets++
						require.Equal(t, 20*time.Millisecond, s.Duration())
					}
					if s.Kind == observe.Backward {
						backward = append(backward, s)
					}
				}
				times.EndStep()
				require.Equal(t, 3, buckets)
				require.Equal(t, 60.0, times.Means().Comm)
				require.Equal(t, c.exposed, times.Means().Exposed)
				require.Equal(t, 100*(1-c.exposed/60), *times.Overlap())
				require.Equal(t, !c.noOverlap, underBackward(spans, backward))
			})
		})
	}
}

// TestSpansOfAStepShareItsNumber holds for every span of package nn and of this
// one; the calls of a Comm know of no steps.
func TestSpansOfAStepShareItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := map[observe.Kind]bool{}
		for _, s := range scriptedStep(t, false) {
			if s.Lane == "compute" {
				kinds[s.Kind] = true
				require.Equal(t, 2, s.Step, "%s %s", s.Kind, s.Name) // scriptedStep returns the second one
			}
		}
		for _, k := range []observe.Kind{observe.Data, observe.Forward, observe.Backward, observe.Exposed, observe.Optimizer} {
			require.True(t, kinds[k], "no span of kind %s", k)
		}
	})
}

// underBackward reports whether a bucket's call runs while an earlier layer's
// backward pass does.
func underBackward(spans, backward []observe.Span) bool {
	for _, s := range spans {
		for _, b := range backward {
			if s.Kind == observe.Call && s.Bytes >= 1024 && s.Start >= b.Start && s.End <= b.End {
				return true
			}
		}
	}
	return false
}

// scriptedStep runs one step on two ranks and returns rank 0's spans.
func scriptedStep(t *testing.T, noOverlap bool) (spans []observe.Span) {
	done := make(chan error, 2)
	for r, tr := range inproc.New(2) {
		go func() {
			events := observe.NewRecorder(1024)
			comm := collective.NewGroup(slowTransport{tr, 10 * time.Millisecond}, collective.GroupConfig{Name: "world", Events: events, Algorithm: "ring"})
			err := slowStep(t.Context(), comm, events, noOverlap)
			if r == 0 {
				events.Drain(func(s observe.Span) { spans = append(spans, s) })
			}
			done <- errors.Join(err, comm.Close(), tr.Close())
		}()
	}
	require.NoError(t, errors.Join(<-done, <-done))
	return spans
}

func slowStep(ctx context.Context, comm collective.Comm, events *observe.Recorder, noOverlap bool) error {
	dev := naive.New()
	var blocks []nn.Block
	for _, name := range []string{"a", "b", "c"} {
		blocks = append(blocks, slowBlock{nn.NewSeq(name, nn.NewLinear(name, 32, 32, nn.LinearConfig{})), 40 * time.Millisecond})
	}
	if err := nn.Materialize(dev, blocks, 1); err != nil {
		return err
	}
	opt, err := optim.New(optim.Config{Name: "sgd"})
	if err != nil {
		return err
	}
	g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt,
		FusionConfig{Device: dev, ThresholdMB: 0.003, FirstMB: 0.003, NoOverlap: noOverlap, Events: events})
	if err != nil {
		return err
	}
	defer g.Close()
	x, y := make([]float32, 2*32), make([]int32, 2)
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy, Events: events,
		Feed: func(_ context.Context, m Micro) (Batch, error) {
			n := m.Samples
			return Batch{Input: device.FromF32(x[:n*32]), Shape: nn.Plain(n, 32), Target: device.FromI32(y[:n])}, nil
		}})
	for range 2 { // the first step cuts the buckets in the middle of its backward pass
		events.Drain(func(observe.Span) {})
		if err := e.Step(ctx, 2, 1); err != nil {
			return err
		}
		if err := g.Step(0.1); err != nil {
			return err
		}
	}
	return nil
}
