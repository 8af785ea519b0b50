//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/monitor"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
)

// watched is a world of which rank 0's Monitor tells what stalls.
type watched struct {
	*world
	table    *store.Local
	monitors []*monitor.Monitor
	stalls   chan string
}

// watchers starts the Monitors of n ranks that have devices and no Comms yet.
func watchers(t *testing.T, n int) *watched {
	w := &watched{table: store.NewLocal(), stalls: make(chan string, 64)}
	for r := range n {
		c := monitor.Config{Rank: r, Size: n, Store: w.table, Namespace: "watched", Stall: 50 * time.Millisecond}
		if r == 0 {
			c.On = func(e monitor.Event) {
				if e.Kind == monitor.Stalled {
					w.stalls <- e.Text
				}
			}
		}
		m, err := monitor.Start(t.Context(), c)
		require.NoError(t, err)
		w.monitors = append(w.monitors, m)
	}
	t.Cleanup(func() {
		for _, m := range w.monitors {
			require.NoError(t, m.Close())
		}
	})
	w.world = devices(t, n)
	return w
}

func (w *watched) join(ctx context.Context, r int, timeout time.Duration) (err error) {
	w.comms[r], err = hccl.New(ctx, hccl.Config{
		Rank: r, Size: len(w.comms), Device: w.devices[r], Store: w.table, Namespace: "watched", Timeout: timeout, Monitor: w.monitors[r],
	})
	if err != nil {
		w.comms[r] = nil
	}
	return err
}

func (w *watched) joinAll(t *testing.T, timeout time.Duration) {
	var all errgroup.Group
	for r := range w.comms {
		all.Go(func() error { return w.join(context.Background(), r, timeout) })
	}
	require.NoError(t, all.Wait())
}

// stall waits for a report that tells all of these.
func (w *watched) stall(t *testing.T, words ...string) {
	for text := range w.stalls {
		found := true
		for _, word := range words {
			found = found && strings.Contains(text, word)
		}
		if found {
			return
		}
		t.Log(text)
	}
}

// TestStalledJoin: while a rank does not come, the others are seen to wait for it, and
// when it comes nothing is lost.
func TestStalledJoin(t *testing.T) {
	w := watchers(t, 3)
	var all errgroup.Group
	for r := range 2 {
		all.Go(func() error { return w.join(context.Background(), r, time.Hour) })
	}
	w.stall(t, "the making of group world (rank 0 waits for rank 2 to come) has not ended after", "rank 2", "has not made the group")
	require.NoError(t, errors.Join(w.join(t.Context(), 2, time.Hour), all.Wait()))
	for _, err := range w.each(sums) {
		require.NoError(t, err)
	}
}

// TestStalledCalls: of a call, and of a message, that a rank does not join in.
func TestStalledCalls(t *testing.T) {
	w := watchers(t, 2)
	w.joinAll(t, time.Hour)
	buffer := func() device.Buf { return device.FromF32(make([]float32, 10)) }
	sum := func(r int) *collective.Work {
		return w.comms[r].Start(t.Context(), collective.Call{Kind: plan.AllReduce, In: buffer(), Label: "weights"})
	}
	first := sum(0)
	w.stall(t, "call 1 of group world (all-reduce sum of 10 f32 of weights) has not ended after", "rank 0 waits in it", "has not started it")
	require.NoError(t, sum(1).Wait(t.Context()))
	require.NoError(t, first.Wait(t.Context()))

	receive := w.comms[0].Exchange(t.Context(), []collective.PointToPoint{{Peer: 1, Recv: true, Buf: buffer()}})
	_ = receive.Done() // it is waited for
	w.stall(t, "message 1 of group world (receive of 10 f32 of a lane that is joining) has not ended after", "has not sent it")
	require.NoError(t, w.comms[1].Exchange(t.Context(), []collective.PointToPoint{{Peer: 0, Buf: buffer()}}).Wait(t.Context()))
	require.NoError(t, receive.Wait(t.Context()))
}

// TestLost: a rank that a Monitor finds gone ends what waits for it, by name.
func TestLost(t *testing.T) {
	w := watchers(t, 3)
	w.joinAll(t, time.Hour)
	work := w.comms[0].Start(t.Context(), collective.Call{Kind: plan.Barrier})
	receive := w.comms[0].Exchange(t.Context(), []collective.PointToPoint{{Peer: 1, Recv: true, Buf: device.FromF32(make([]float32, 1))}})
	require.True(t, w.comms[0].(collective.Watched).Lost(2, errors.New("it has died")))
	require.False(t, w.comms[0].(collective.Watched).Lost(1, errors.New("too")), "it is dead already")
	var peer *collective.PeerError
	require.ErrorAs(t, work.Wait(t.Context()), &peer)
	require.Equal(t, 2, peer.Peer)
	require.EqualError(t, peer, "rank 0, group world, call 1 (barrier): peer 2: rank 0 lost rank 2: it has died")
	require.ErrorAs(t, receive.Wait(t.Context()), &peer)
	require.Equal(t, 2, peer.Peer)
}

// opening tells when a Comm comes to be, and is no more.
type opening struct {
	opened chan collective.Watched
	closed chan collective.Watched
}

func (o *opening) Opened(c collective.Watched) { o.opened <- c }
func (o *opening) Closed(c collective.Watched) { o.closed <- c }

// TestLostWhileJoining: also of a Comm that is not made yet.
func TestLostWhileJoining(t *testing.T) {
	w := devices(t, 2)
	o := &opening{make(chan collective.Watched, 1), make(chan collective.Watched, 1)}
	failed := make(chan error)
	go func() {
		_, err := hccl.New(t.Context(), hccl.Config{Size: 2, Device: w.devices[0], Store: store.NewLocal(), Namespace: "lost", Timeout: time.Hour, Monitor: o})
		failed <- err
	}()
	c := <-o.opened
	require.True(t, c.Lost(1, errors.New("it has died")))
	require.EqualError(t, <-failed, "rank 0, group world (joining): peer 1: rank 0 lost rank 1: it has died")
	require.Equal(t, c, <-o.closed)
}

// TestSuspect: the time-out blames whom somebody else has found held up.
func TestSuspect(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.Timeout = 200 * time.Millisecond })
	c := w.comms[0].(collective.Watched)
	c.Suspect(1, "is stopped")
	c.Suspect(2, "is stopped, too")
	c.Suspect(2, "")
	var peer *collective.PeerError
	err := w.comms[0].Start(t.Context(), collective.Call{Kind: plan.Barrier}).Wait(t.Context())
	require.ErrorAs(t, err, &peer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "rank 0, group world, call 1 (barrier): peer 1: it is stopped; no end after 200ms: context deadline exceeded")
}

// TestSuspectElsewhere: a communicator of others is late by a rank that is in none.
func TestSuspectElsewhere(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.Timeout = 200 * time.Millisecond })
	w.comms[2].(collective.Watched).Suspect(0, "is stopped")
	receive := w.comms[2].Exchange(t.Context(), []collective.PointToPoint{{Peer: 1, Recv: true, Buf: device.FromF32(make([]float32, 1))}})
	require.EqualError(t, receive.Wait(t.Context()), "rank 2, group world.from1.to2 (joining): rank 0 is stopped; it has not begun: waited 200ms: context deadline exceeded")
}

// TestPostedAhead: a receive that nobody waits for yet has no time-out. Had it one, it
// would have come before that of rank 2's message, which was posted later.
func TestPostedAhead(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.Timeout = 300 * time.Millisecond })
	receive := func(peer int) *collective.Work {
		return w.comms[0].Exchange(t.Context(), []collective.PointToPoint{{Peer: peer, Recv: true, Buf: device.FromF32(make([]float32, 1))}})
	}
	receive(1)
	var peer *collective.PeerError
	err := receive(2).Wait(t.Context())
	require.ErrorAs(t, err, &peer)
	require.Equal(t, 2, peer.Global[peer.Peer], "%v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestSuspectOfNone: nor is the peer of a lane to blame then.
func TestSuspectOfNone(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.Timeout = 3 * time.Second })
	exchange := func(r, peer int, recv bool) *collective.Work {
		return w.comms[r].Exchange(t.Context(), []collective.PointToPoint{{Peer: peer, Recv: recv, Buf: device.FromF32(make([]float32, 1))}})
	}
	require.NoError(t, errors.Join(exchange(1, 2, false).Wait(t.Context()), exchange(2, 1, true).Wait(t.Context())))
	w.comms[2].(collective.Watched).Suspect(7, "is stopped")
	err := exchange(2, 1, true).Wait(t.Context())
	var peer *collective.PeerError
	require.ErrorAs(t, err, &peer)
	require.Equal(t, -1, peer.Peer, "%v", err)
	require.ErrorContains(t, err, "rank 7 is stopped")
}
