package commtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// testQueue starts many calls before it waits for any.
func testQueue(t *testing.T, connect Connect) {
	groups(t, connect, 3, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
		return queueOfThree(ctx, g)
	})
}

func queueOfThree(ctx context.Context, g collective.Comm) error {
	for round := range 5 {
		var works []*collective.Work
		var buffers [][]int32
		for i := range 40 {
			b := make([]int32, 1+(i*7919)%50_000)
			for j := range b {
				b[j] = int32(i + g.Rank())
			}
			buffers = append(buffers, b)
			works = append(works, g.Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromI32(b)}))
		}
		for i := range works {
			at := i
			if round%2 == 1 {
				at = len(works) - 1 - i
			}
			if err := works[at].Wait(ctx); err != nil {
				return err
			}
			for _, x := range buffers[at] {
				if x != int32(3*at+3) {
					return fmt.Errorf("call %d gave %d, not %d", at, x, 3*at+3)
				}
			}
		}
		select {
		case <-works[0].Done():
		default:
			return fmt.Errorf("a waited call is not done")
		}
	}
	return nil
}

// testSubGroups uses two groups in opposite order on different ranks.
func testSubGroups(t *testing.T, connect Connect) {
	groups(t, connect, 4, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
		return subGroupsOfFour(ctx, g)
	})
}

func subGroupsOfFour(ctx context.Context, g collective.Comm) error {
	var subs []collective.Comm
	for _, ranks := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3}} {
		sub, err := g.Sub(ctx, ranks)
		if err != nil {
			return err
		}
		if sub == nil {
			if g.Rank()%2 == 1 || len(ranks) != 2 {
				return fmt.Errorf("rank %d is missing in %v", g.Rank(), ranks)
			}
			continue
		}
		defer sub.Close()
		if sub.Size() != len(ranks) || ranks[sub.Rank()] != g.Rank() {
			return fmt.Errorf("rank %d is %d of %d in %v", g.Rank(), sub.Rank(), sub.Size(), ranks)
		}
		subs = append(subs, sub)
	}
	for round := range 10 {
		order := []int{0, 1}
		if (g.Rank()+round)%2 == 1 {
			order = []int{1, 0}
		}
		works := make([]*collective.Work, 2)
		b := [2][]float32{make([]float32, 40_000), make([]float32, 40_000)}
		for _, i := range order {
			b[i][0], b[i][39_999] = float32(subs[i].Rank()), float32(1+i)
			works[i] = subs[i].Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromF32(b[i])})
		}
		for _, i := range order {
			if err := works[i].Wait(ctx); err != nil {
				return err
			}
			if b[i][0] != 6 || b[i][39_999] != float32(4*(1+i)) {
				return fmt.Errorf("sub-group %d summed to %v and %v", i, b[i][0], b[i][39_999])
			}
		}
	}
	if len(subs) == 3 {
		b := []int64{int64(g.Rank())}
		if err := collective.Broadcast(ctx, subs[2], 1, device.FromI64(b)); err != nil || b[0] != 3 {
			return fmt.Errorf("broadcast in [1 3] gave %d, %w", b[0], err)
		}
	}
	return collective.Barrier(ctx, g) // before anybody closes a sub-group
}

// testExchange sends both ways around a circle, several batches at once, in
// order per pair and direction, and while calls run.
func testExchange(t *testing.T, connect Connect) {
	for _, n := range []int{1, 2, 4} {
		groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			return aroundACircle(ctx, g)
		})
	}
	groups(t, connect, 2, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
		return oneMessage(ctx, g)
	})
}

func aroundACircle(ctx context.Context, g collective.Comm) error {
	n := g.Size()
	left, right := (g.Rank()+n-1)%n, (g.Rank()+1)%n
	var works []*collective.Work
	var received [][2][]float32
	for i := range 12 {
		size := []int{1, 100_000, 0, 777}[i%4]
		out := make([]float32, size)
		for j := range out {
			out[j] = float32(1000*i + g.Rank())
		}
		in := [2][]float32{make([]float32, size), make([]float32, size)}
		received = append(received, in)
		works = append(works,
			g.Exchange(ctx, []collective.PointToPoint{
				{Peer: left, Recv: true, Buf: device.FromF32(in[0])},
				{Peer: right, Buf: device.FromF32(out)},
			}),
			g.Exchange(ctx, []collective.PointToPoint{{Peer: left, Buf: device.FromF32(out)}}),
			g.Exchange(ctx, []collective.PointToPoint{{Peer: right, Recv: true, Buf: device.FromF32(in[1])}}),
			g.Start(ctx, collective.Call{Kind: plan.Barrier}),
		)
	}
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	if n <= 2 {
		return nil // both neighbours are one lane: only order per lane is promised
	}
	for i, in := range received {
		for side, peer := range []int{left, right} {
			for _, x := range in[side] {
				if x != float32(1000*i+peer) {
					return fmt.Errorf("message %d from rank %d has %v", i, peer, x)
				}
			}
		}
	}
	return g.Exchange(ctx, nil).Wait(ctx)
}

func oneMessage(ctx context.Context, g collective.Comm) error {
	b := []int32{7}
	if g.Rank() == 0 {
		return collective.Send(ctx, g, 1, device.FromI32(b))
	}
	b[0] = 0
	if err := collective.Recv(ctx, g, 0, device.FromI32(b)); err != nil || b[0] != 7 {
		return fmt.Errorf("received %d, %w", b[0], err)
	}
	return nil
}

// testEvents: each call leaves its waiting and its running time.
func testEvents(t *testing.T, connect Connect) {
	with(t, connect, 2, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			events := observe.NewRecorder(16)
			g := collective.NewGroup(tr, collective.GroupConfig{Name: "lane", Events: events, Algorithm: "ring"})
			defer g.Close()
			b := device.FromF32(make([]float32, 1000))
			call := collective.Call{Kind: plan.AllReduce, In: b, Label: "bucket 0"}
			if err := g.Start(ctx, call).Wait(ctx); err != nil {
				return err
			}
			var spans []observe.Span
			events.Drain(func(s observe.Span) { spans = append(spans, s) })
			if len(spans) != 2 || spans[0].Kind != observe.CallWait || spans[1].Kind != observe.Call {
				return fmt.Errorf("spans are %v", spans)
			}
			wait, run := spans[0], spans[1]
			if wait.Lane != "lane" || run.Name != "bucket 0" || wait.End < wait.Start || run.Start != wait.End || run.End < run.Start || run.Bytes != 4000 || run.BytesIn != 4000 {
				return fmt.Errorf("spans are %+v", spans)
			}
			return collective.Barrier(ctx, g)
		})
	})
}
