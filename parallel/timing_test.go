package parallel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// rated takes time for each byte of large messages, as a link does.
type rated struct {
	collective.Transport
	perByte time.Duration
}

func (r rated) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) > 600 { // no losses, orders and fingerprints
		time.Sleep(time.Duration(len(b)) * r.perByte) // the synctest clock
	}
	return r.Transport.Send(ctx, to, tag, b)
}

func (r rated) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, r, to, tag, stage, fill)
}

// lasting is a block whose forward pass takes a third of what its backward pass
// and that take together.
type lasting struct {
	nn.Block
	forward time.Duration
}

func (l lasting) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	out := l.Block.Forward(t, in)
	nn.Record[slowOp](t).cost = 2 * l.forward // runs before the gradient is out
	time.Sleep(l.forward)                     // the synctest clock
	return out
}

// computation is that of a step.
const computation = 120 * time.Millisecond

// TestDeferredHidesBoth: the last of twelve equally slow layers have most of the
// bytes, as in a ResNet. With sums in the order of the backward pass, within the
// step, what is not hidden is all that comes after it; beside the next forward
// pass, in the order in which they are needed, a step takes hardly longer than the
// larger of computation and communication.
func TestDeferredHidesBoth(t *testing.T) {
	for _, c := range []struct {
		communication    time.Duration
		deferred, within float64 // of the larger, at most and at least
	}{
		{120 * time.Millisecond, 1.1, 1.25},
		{240 * time.Millisecond, 1, 1.1}, // of which small messages take none here
		{60 * time.Millisecond, 1.01, 0.99},
	} {
		larger := max(computation, c.communication)
		within := stepTime(t, false, c.communication)
		deferred := stepTime(t, true, c.communication)
		t.Logf("communication %v, computation %v: %v within the step, %v beside the next", c.communication, computation, within, deferred)
		require.LessOrEqual(t, float64(deferred), c.deferred*float64(larger))
		require.GreaterOrEqual(t, float64(within), c.within*float64(larger))
		require.LessOrEqual(t, deferred, within)
	}
}

// stepTime is that of two ranks when all orders have been tried.
func stepTime(t *testing.T, deferred bool, communication time.Duration) (step time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		widths := []int{16, 16, 16, 16, 16, 24, 24, 24, 24, 24, 48, 48, 48}
		bytes := 0
		for i := range len(widths) - 1 {
			bytes += 4 * (widths[i]*widths[i+1] + widths[i+1])
		}
		done := make(chan error, 2)
		for r, tr := range inproc.New(2) {
			go func() {
				comm := collective.NewGroup(rated{tr, communication / time.Duration(bytes)}, collective.GroupConfig{Name: "world", Algorithm: "ring"})
				took, err := lastingStep(t.Context(), comm, widths, deferred)
				if r == 0 {
					step = took
				}
				done <- errors.Join(err, comm.Close(), tr.Close())
			}()
		}
		require.NoError(t, errors.Join(<-done, <-done))
	})
	return step
}

// lastingStep returns the mean of ten steps.
func lastingStep(ctx context.Context, comm collective.Comm, widths []int, deferred bool) (time.Duration, error) {
	dev := naive.New()
	var blocks []nn.Block
	for i := range len(widths) - 1 {
		name := fmt.Sprint("layer", i)
		blocks = append(blocks, lasting{nn.NewSeq(name, linear(name, widths[i], widths[i+1])), computation / time.Duration(3*(len(widths)-1))})
	}
	if err := nn.Materialize(dev, blocks, 1); err != nil {
		return 0, err
	}
	opt, _ := optim.New(optim.Config{Name: "sgd"})
	g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt, FusionConfig{Device: dev, ThresholdMB: 0.00001, FirstMB: 0.00001, Defer: deferred})
	if err != nil {
		return 0, err
	}
	defer g.Close()
	n := widths[0]
	x, y := make([]float32, 2*n), make([]int32, 2)
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy, Feed: func(_ context.Context, m Micro) (Batch, error) {
		return Batch{Input: device.FromF32(x[:m.Samples*n]), Shape: nn.Plain(m.Samples, n), Target: device.FromI32(y[:m.Samples])}, nil
	}})
	const steps = 10
	start := time.Now()
	for i := range allOrders + steps {
		if i == allOrders {
			start = time.Now()
		}
		if err := errors.Join(e.Step(ctx, 2, 1), g.Step(0.1)); err != nil {
			return 0, err
		}
	}
	return time.Since(start) / steps, nil
}

func TestUrgentFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		send []Send
		want []int
	}{
		{"nothing", nil, []int{}},
		{"as they become ready", []Send{{1, 1, 9}, {3, 1, 5}, {5, 1, 1}}, []int{0, 1, 2}},
		{"what is needed first goes first", []Send{{1, 1, 9}, {1, 1, 5}, {1, 1, 1}}, []int{2, 1, 0}},
		{"what is left of large ones goes last", []Send{{1, 4, 9}, {2, 4, 8}, {3, 4, 7}, {7, 1, 1}, {8, 1, 2}}, []int{0, 2, 3, 4, 1}},
		{"nobody waits long for what is not ready", []Send{{0, 2, 9}, {1, 2, 8}, {30, 1, 1}}, []int{0, 1, 2}},
		{"equal needs: the later layer's gradient is the earlier layer's", []Send{{0, 1, 0}, {0, 1, 0}}, []int{1, 0}},
	} {
		require.Equal(t, c.want, urgentFirst(c.send), c.name)
	}
}

// A long message does not begin just before an urgent one is ready.
func TestSendOrderLooksAhead(t *testing.T) {
	sends := []Send{{0, 2, 2}, {0, 9, 8}, {3, 1, 1}}
	require.Equal(t, []int{0, 1, 2}, urgentFirst(sends))
	require.Equal(t, []int{0, 2, 1}, SendOrder(sends, 10))
	require.EqualValues(t, 15, StepTime(sends, []int{0, 2, 1}, 10)) // 1 has come at 13, and 2 is what is left then
	require.EqualValues(t, 21, StepTime(sends, []int{0, 1, 2}, 10)) // 2 has come at 12, and 9 is left
}

// TestSendOrderIsNearlyBest compares it with all orders of a few messages.
func TestSendOrderIsNearlyBest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	worst := 1.0
	for range 300 {
		var sends []Send
		for i := range 6 {
			sends = append(sends, Send{Ready: time.Duration(i*10 + r.IntN(10)), Cost: time.Duration(1 + r.IntN(40)), Need: time.Duration((5-i)*5 + r.IntN(5))})
		}
		const forward = 30
		best := time.Duration(1 << 40)
		orders([]int{}, 6, func(order []int) { best = min(best, StepTime(sends, order, forward)) })
		worst = max(worst, float64(StepTime(sends, SendOrder(sends, forward), forward))/float64(best))
	}
	require.LessOrEqual(t, worst, 1.1, "what moving one message at a time does not find")
}

// orders calls f for all orders of n numbers that begin with order.
func orders(order []int, n int, f func([]int)) {
	if len(order) == n {
		f(order)
		return
	}
	for k := range n {
		if !slices.Contains(order, k) {
			orders(append(order, k), n, f)
		}
	}
}
