package commtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// failing runs f on every rank of a group in which the call that f returns must
// fail everywhere, and checks what all failures have in common.
func failing(t *testing.T, connect Connect, n int, timeout time.Duration, f func(ctx context.Context, g *collective.Group) error, check func(rank int, err *collective.PeerError) error) {
	t.Helper()
	with(t, connect, n, func(w *world) {
		var all sync.WaitGroup // nobody closes before all have failed
		all.Add(n)
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			g := collective.NewGroup(tr, collective.GroupConfig{Timeout: timeout, Name: "doomed"})
			defer g.Close()
			err := f(ctx, g)
			all.Done()
			all.Wait()
			var failure *collective.PeerError
			if !errors.As(err, &failure) {
				return fmt.Errorf("%v is no PeerError", err)
			}
			if failure.Rank != rank || failure.Group != "doomed" {
				return fmt.Errorf("misnamed: %v", err)
			}
			if err := check(rank, failure); err != nil {
				return fmt.Errorf("%w: %v", err, failure)
			}
			// The group is dead and stays so.
			again := collective.Barrier(ctx, g)
			if !errors.As(again, &failure) {
				return fmt.Errorf("a call of a dead group returned %v", again)
			}
			return nil
		})
	})
}

// testDifferentCalls: every rank gets an error that names both calls.
func testDifferentCalls(t *testing.T, connect Connect) {
	f32 := func(n int) device.Buf { return device.FromF32(make([]float32, n)) }
	sum := func(n int) collective.Call { return collective.Call{Kind: plan.AllReduce, In: f32(n)} }
	broadcast := func(root int) collective.Call {
		return collective.Call{Kind: plan.Broadcast, Root: root, In: f32(10)}
	}
	maximum := sum(10)
	maximum.Op = collective.Max
	naive, ring := sum(50), sum(50)
	naive.Algorithm, ring.Algorithm = "naive", "ring"
	cut, cutElse := collective.Call{Kind: plan.ReduceScatter, In: f32(6), Out: f32(2), InBounds: []int{0, 2, 4, 6}}, collective.Call{Kind: plan.ReduceScatter, In: f32(6), Out: f32(1), InBounds: []int{0, 3, 5, 6}}
	tests := []struct {
		name          string
		most, last    []collective.Call
		mine, another string
	}{
		{"length", []collective.Call{sum(10)}, []collective.Call{sum(12)}, "of 10 f32", "of 12 f32"},
		{"small and large", []collective.Call{sum(10)}, []collective.Call{sum(200_000)}, "of 10 f32", "of 200000 f32"},
		{"nothing", []collective.Call{sum(0)}, []collective.Call{sum(3)}, "all-reduce sum of f32", "of 3 f32"},
		{"large", []collective.Call{sum(300_000)}, []collective.Call{sum(200_000)}, "of 300000 f32", "of 200000 f32"},
		{"operation", []collective.Call{sum(10)}, []collective.Call{broadcast(0)}, "all-reduce sum of 10 f32", "broadcast from rank 0 of 10 f32"},
		{"reduction", []collective.Call{sum(10)}, []collective.Call{maximum}, "sum of 10", "max of 10"},
		{"root", []collective.Call{broadcast(0)}, []collective.Call{broadcast(1)}, "from rank 0", "from rank 1"},
		{"type", []collective.Call{sum(10)}, []collective.Call{{Kind: plan.AllReduce, In: device.FromI32(make([]int32, 10))}}, "10 f32", "10 i32"},
		{"algorithm", []collective.Call{ring}, []collective.Call{naive}, "by ring", "by naive"},
		{"bounds", []collective.Call{cut}, []collective.Call{cutElse}, "cut one way", "cut another way"},
		{"order", []collective.Call{sum(10), sum(11)}, []collective.Call{sum(11), sum(10)}, "of 10 f32", "of 11 f32"},
		{"one too many", []collective.Call{broadcast(2), sum(5)}, []collective.Call{sum(5)}, "broadcast from rank 2", "sum of 5 f32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := func(ctx context.Context, g *collective.Group) error {
				calls := tt.most
				if g.Rank() == 2 {
					calls = tt.last
				}
				for _, c := range calls {
					c.In = device.FromBytes(c.In.Type, make([]byte, c.In.Size()))
					if c.Out.Len > 0 {
						c.Out = f32(c.Out.Len)
					}
					if err := g.Start(ctx, c).Wait(ctx); err != nil {
						return err
					}
				}
				// Who only had to send learns of it in the next call, by way of
				// rank 0: a signal straight to a rank still in the call before
				// would be named instead.
				return g.Start(ctx, collective.Call{Kind: plan.Barrier, Algorithm: "naive"}).Wait(ctx)
			}
			failing(t, connect, 3, patience/2, run, func(rank int, err *collective.PeerError) error {
				text := err.Error()
				if !strings.Contains(text, tt.mine) || !strings.Contains(text, tt.another) {
					return fmt.Errorf("does not name both calls")
				}
				return nil
			})
		})
	}
}

// testCancelledCall: one rank gives up, all learn of it.
func testCancelledCall(t *testing.T, connect Connect) {
	failing(t, connect, 3, patience/2, func(ctx context.Context, g *collective.Group) error {
		b := device.FromF32(make([]float32, 10))
		if g.Rank() != 1 {
			return collective.AllReduce(ctx, g, collective.Sum, b)
		}
		if err := collective.Send(ctx, g, 1, device.Buf{}); err != nil {
			return err
		}
		short, cancel := context.WithCancelCause(ctx)
		work := g.Start(short, collective.Call{Kind: plan.Reduce, Root: 1, In: b, Algorithm: "naive", Label: "never whole"})
		cancel(errors.New("second thoughts"))
		<-work.Done()
		return work.Err()
	}, func(rank int, err *collective.PeerError) error {
		if rank == 1 && !strings.Contains(err.Error(), "second thoughts") && !strings.Contains(err.Error(), "different calls") {
			return fmt.Errorf("the cause is lost")
		}
		return nil
	})
}

// testDifferentMessages: a send meets a receive of another length or type.
func testDifferentMessages(t *testing.T, connect Connect) {
	for _, lengths := range [][2]int{{3, 4}, {4, 200_000}, {200_000, 4}} {
		failing(t, connect, 2, patience/2, func(ctx context.Context, g *collective.Group) error {
			b := device.FromF32(make([]float32, lengths[g.Rank()]))
			part := []collective.PointToPoint{{Peer: 1 - g.Rank(), Recv: g.Rank() == 1, Buf: b}}
			if err := g.Exchange(ctx, part).Wait(ctx); err != nil {
				return err
			}
			return collective.Barrier(ctx, g) // a small send has gone well
		}, func(rank int, err *collective.PeerError) error {
			for _, n := range lengths {
				if !strings.Contains(err.Error(), fmt.Sprintf("send of %d f32", n)) {
					return fmt.Errorf("does not name both lengths")
				}
			}
			return nil
		})
	}
}

// testTimeout: a rank does not come, and the others say so.
func testTimeout(t *testing.T, connect Connect) {
	failing(t, connect, 3, 1500*time.Millisecond, func(ctx context.Context, g *collective.Group) error {
		if g.Rank() == 2 { // comes only to hear that it is too late
			if err := collective.Recv(ctx, g, 0, device.FromF32(make([]float32, 1))); err != nil {
				return err
			}
		}
		c := collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 10)), Label: "bucket 3: conv1.weight"}
		return g.Start(ctx, c).Wait(ctx)
	}, func(rank int, err *collective.PeerError) error {
		if !strings.Contains(err.Error(), "1.5s") {
			return fmt.Errorf("does not tell the time-out")
		}
		if rank != 2 && (err.Label != "bucket 3: conv1.weight" || err.Call != "all-reduce sum of 10 f32" || err.Sequence != 1 || err.Peer < 0) {
			return fmt.Errorf("does not tell the call, the bucket or the peer")
		}
		return nil
	})
}

// testLostPeer: a rank dies in the middle of things, and nobody waits for the
// time-out.
func testLostPeer(t *testing.T, connect Connect) {
	for _, length := range []int{10, 500_000} {
		with(t, connect, 3, func(w *world) {
			w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
				g := collective.NewGroup(tr, collective.GroupConfig{Timeout: patience / 2})
				defer g.Close()
				if err := collective.Barrier(ctx, g); err != nil && rank == 2 {
					return err
				}
				if rank == 2 {
					return tr.Close()
				}
				var err error
				for err == nil {
					err = collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, length)))
				}
				var failure *collective.PeerError
				if !errors.As(err, &failure) || errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("after a rank's death: %v", err)
				}
				return nil
			})
		})
	}
}

// testClosedPeer: a rank leaves in good order; the others finish what it took
// part in and fail in the next call.
func testClosedPeer(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			g := collective.NewGroup(tr, collective.GroupConfig{Timeout: patience / 2})
			b := device.FromF32(make([]float32, 1000))
			for range 3 {
				if err := collective.AllReduce(ctx, g, collective.Sum, b); err != nil {
					return err
				}
			}
			if rank == 2 {
				if err := errors.Join(g.Close(), g.Close()); err != nil {
					return err
				}
				if err := collective.Barrier(ctx, g); !errors.Is(err, collective.ErrClosed) {
					return fmt.Errorf("a call of a closed group returned %v", err)
				}
				return nil
			}
			defer g.Close()
			err := collective.AllReduce(ctx, g, collective.Sum, b)
			var failure *collective.PeerError
			if !errors.As(err, &failure) || errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("after a rank closed: %v", err)
			}
			return nil
		})
	})
}
