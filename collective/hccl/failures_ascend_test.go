//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// sums runs all-reduces until one fails.
func sums(ctx context.Context, c collective.Comm) error {
	for range 20 {
		b := []float32{1, 2}
		if err := collective.AllReduce(ctx, c, collective.Sum, device.FromF32(b)); err != nil {
			return err
		}
		if b[1] != float32(2*c.Size()) {
			return fmt.Errorf("the sum is %v", b)
		}
	}
	return nil
}

// TestLateError is trap 9: ranks that call with different counts are told so when
// the stream is waited for, not by the call.
func TestLateError(t *testing.T) {
	w := start(t, 2)
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		return collective.AllReduce(ctx, c, collective.Sum, device.FromF32(make([]float32, 3+c.Rank())))
	}) {
		var peer *collective.PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, "world", peer.Group)
		require.ErrorContains(t, err, "EI0005")
	}
	for _, err := range w.each(sums) {
		require.Error(t, err, "a Comm that has failed is dead")
	}
}

// TestErrorTellsAll: code, both texts, call, communicator, rank, logs and hint.
func TestErrorTellsAll(t *testing.T) {
	t.Setenv("ASCEND_PROCESS_LOG_PATH", "/logs")
	w := start(t, 2)
	errs := w.each(func(ctx context.Context, c collective.Comm) error {
		return collective.Broadcast(ctx, c, c.Rank(), device.FromF32(make([]float32, 8)))
	})
	found := false
	for _, err := range errs {
		require.Error(t, err)
		var e *hccl.Error
		if errors.As(err, &e) {
			found = true
			require.NotZero(t, e.Code)
			require.Equal(t, "world", e.Comm)
			require.Equal(t, "/logs/debug/plog", e.Log)
			require.Contains(t, e.Text, "EI0005")
			require.Equal(t, "EI0005: ranks called with different arguments", e.Hint)
			require.Contains(t, err.Error(), "broadcast of 8 f32")
		}
	}
	require.True(t, found, "%v", errs)
}

// TestTimeout: a peer that does not come ends the call at the time-out, on the
// rank that waits, and the other rank hears of it.
func TestTimeout(t *testing.T) {
	w := start(t, 2, func(c *hccl.Config) { c.Timeout = 500 * time.Millisecond })
	ctx := t.Context()
	b := device.FromF32(make([]float32, 8))
	require.ErrorIs(t, collective.AllReduce(ctx, w.comms[0], collective.Sum, b), context.DeadlineExceeded)
	err := collective.AllReduce(ctx, w.comms[1], collective.Sum, b)
	if err == nil { // what rank 0 had queued when it gave up is with the device, and may meet this call
		err = collective.AllReduce(ctx, w.comms[1], collective.Sum, b)
	}
	require.Error(t, err)
}

func TestCancelledCall(t *testing.T) {
	w := start(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	work := w.comms[0].Start(ctx, collective.Call{Kind: plan.Barrier})
	cancel()
	<-work.Done()
	require.ErrorIs(t, work.Err(), context.Canceled)
}

// TestClose: what waits fails with ErrClosed, and nothing is left on the device.
func TestClose(t *testing.T) {
	w := start(t, 2)
	work := w.comms[0].Start(t.Context(), collective.Call{Kind: plan.Barrier})
	receive := w.comms[0].Exchange(t.Context(), []collective.PointToPoint{{Peer: 0, Recv: true, Buf: device.FromF32(make([]float32, 1))}})
	require.NoError(t, w.comms[0].Close())
	<-work.Done()
	require.ErrorIs(t, work.Err(), collective.ErrClosed)
	<-receive.Done()
	require.ErrorIs(t, receive.Err(), collective.ErrClosed, "a message of itself, which it does not send")
	require.ErrorIs(t, w.comms[0].Start(t.Context(), collective.Call{Kind: plan.Barrier}).Err(), collective.ErrClosed)
}

// TestErrorOfASub: ranks are named as in the world.
func TestErrorOfASub(t *testing.T) {
	w := start(t, 3)
	for r, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		sub, err := c.Sub(ctx, []int{2, 1})
		if err != nil || sub == nil {
			return err
		}
		return errors.Join(collective.Broadcast(ctx, sub, 5, device.FromF32(make([]float32, 2))), sub.Close())
	}) {
		if r > 0 { // both are wrong, and the first one to say so is what both report
			require.ErrorContains(t, err, fmt.Sprintf("rank %d, group world.1", r))
			require.ErrorContains(t, err, "group world.1, call 1 (broadcast of 2 f32): no rank 5 among 2")
		}
	}
}

func TestMisuse(t *testing.T) {
	for _, call := range []collective.Call{
		{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 2)), Out: device.FromF32(make([]float32, 3))},
		{Kind: plan.Broadcast, Root: 5, In: device.FromF32(make([]float32, 2))},
		{Kind: plan.AllGather, In: device.FromF32(make([]float32, 2)), Out: device.FromF32(make([]float32, 3))},
		{Kind: plan.ReduceScatter, In: device.FromF32(make([]float32, 2)), InBounds: []int{0, 3}},
		{Kind: plan.AllReduce, In: device.Buf{Type: device.F32, Len: 2, Handle: 64}},
		{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 2)), InBounds: []int{0, 2}, Codec: halves{}},
	} {
		t.Run(call.Kind.String(), func(t *testing.T) {
			w := start(t, 1)
			require.Error(t, w.comms[0].Start(t.Context(), call).Wait(t.Context()))
		})
	}
	w := start(t, 1)
	for _, recv := range []bool{false, true} {
		part := collective.PointToPoint{Recv: recv, Buf: device.Buf{Type: device.F32, Len: 2, Handle: 64}}
		require.ErrorContains(t, w.comms[0].Exchange(t.Context(), []collective.PointToPoint{part}).Wait(t.Context()), "cannot read")
	}
}

// faulted runs a test of this program under faults of the simulator.
func faulted(t *testing.T, test, faults string, env ...string) {
	t.Helper()
	out, err := ascendsim.Again(t, "", "^"+test+"$", append(env, "ASCENDSIM_FAULTS="+faults, "ASCEND_TEST_FAULTS=1")...)
	require.NoError(t, err, "%s", out)
}

func inFault(t *testing.T) bool { return os.Getenv("ASCEND_TEST_FAULTS") != "" }

// TestBusyOnDestroy: a communicator that is busy is asked again.
func TestBusyOnDestroy(t *testing.T) { faulted(t, "TestSums", "rank=0 kind=again count=3") }

func TestDelay(t *testing.T) { faulted(t, "TestSums", "rank=0 kind=delay ms=20") }

func TestSums(t *testing.T) {
	for _, err := range start(t, 2).each(sums) {
		require.NoError(t, err)
	}
}

func TestAsyncError(t *testing.T) { faulted(t, "TestFailingSums", "rank=1 kind=async after=3") }

func TestFreeze(t *testing.T) { faulted(t, "TestFailingSums", "rank=1 kind=freeze after=3") }

// TestFailingSums runs under faults: all ranks get an error and nothing is left.
func TestFailingSums(t *testing.T) {
	if !inFault(t) {
		return // TestAsyncError and TestFreeze run it
	}
	w := start(t, 2, func(c *hccl.Config) { c.Timeout = 2 * time.Second })
	for _, err := range w.each(sums) {
		require.Error(t, err)
		if strings.Contains(os.Getenv("ASCENDSIM_FAULTS"), "async") {
			require.ErrorContains(t, err, "21 (error cqe)")
			require.ErrorContains(t, err, "EI0013")
		}
	}
}

// TestBadTimeout is trap 8: a value out of range is no time-out but a failure.
func TestBadTimeout(t *testing.T) {
	out, err := ascendsim.Again(t, "", "^TestRefusedWorld$", "HCCL_CONNECT_TIMEOUT=5", "ASCEND_TEST_FAULTS=EI0001")
	require.NoError(t, err, "%s", out)
}

// TestRefusedWorld: a world that HCCL refuses leaves nothing.
func TestRefusedWorld(t *testing.T) {
	if !inFault(t) {
		return
	}
	w, err := try(t, 2)
	require.ErrorContains(t, err, os.Getenv("ASCEND_TEST_FAULTS"))
	for i := range w.comms {
		w.comms[i] = nil
	}
}

// TestBlameless: what the caller gives up is no rank's fault.
func TestBlameless(t *testing.T) {
	receive := func(ctx context.Context, w *world) error {
		work := w.comms[0].Exchange(ctx, []collective.PointToPoint{{Peer: 1, Recv: true, Buf: device.FromF32(make([]float32, 1))}})
		<-work.Done()
		return work.Err()
	}
	t.Run("cancelled", func(t *testing.T) {
		w := start(t, 2)
		for r, err := range w.each(func(ctx context.Context, c collective.Comm) error { // so the lane is made
			return c.Exchange(ctx, []collective.PointToPoint{{Peer: 1 - c.Rank(), Recv: c.Rank() == 0, Buf: device.FromF32(make([]float32, 1))}}).Wait(ctx)
		}) {
			require.NoError(t, err, "rank %d", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var peer *collective.PeerError
		err := receive(ctx, w)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, &peer)
		require.Equal(t, -1, peer.Peer, "%v", err)
	})
	t.Run("join", func(t *testing.T) {
		w := devices(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := hccl.New(ctx, hccl.Config{Size: 2, Device: w.devices[0], Store: store.NewLocal(), Namespace: "blameless"})
		var peer *collective.PeerError
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, &peer)
		require.Equal(t, -1, peer.Peer, "%v", err)
	})
}

// TestDeadWhileIdle: a Comm that has died with no call waits no longer for the library than
// one that failed in a call.
func TestDeadWhileIdle(t *testing.T) {
	faulted(t, "TestBusyForGood", "rank=0 kind=again count=1000000")
}

// TestBusyForGood runs in TestDeadWhileIdle.
func TestBusyForGood(t *testing.T) {
	if !inFault(t) {
		return
	}
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err)
	d, err := l.Open(0)
	require.NoError(t, err)
	meeting := store.NewLocal()
	c, err := hccl.New(t.Context(), hccl.Config{Size: 1, Device: d, Store: meeting, Namespace: "busy"})
	require.NoError(t, err)
	receive := c.Exchange(t.Context(), []collective.PointToPoint{{Recv: true, Buf: device.FromF32(make([]float32, 1))}})
	require.NoError(t, meeting.Set(t.Context(), "busy/hccl/0/failed", []byte("rank 7 has died")))
	<-receive.Done()
	require.ErrorContains(t, receive.Err(), "rank 7 has died")
	require.ErrorContains(t, c.Close(), "the library does not let go of a thread")
	require.NoError(t, d.Close())
	require.NoError(t, l.Close())
	require.NotZero(t, alive(l, "communicators"), "the process frees them")
}
