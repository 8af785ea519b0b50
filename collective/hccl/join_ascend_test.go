//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// tellingStore tells when a key with a word is set. It does nothing for whose time
// is over, as a Client does.
type tellingStore struct {
	*store.Local
	word string
	deaf bool // to ranks that have failed
	once sync.Once
	set  chan struct{}
}

func (s *tellingStore) Set(ctx context.Context, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.deaf && strings.Contains(key, "/failed") {
		return nil
	}
	if strings.Contains(key, s.word) {
		defer s.once.Do(func() { close(s.set) })
	}
	return s.Local.Set(ctx, key, value)
}

// TestLateJoin: a communicator that comes to be after its rank has given up is ended.
func TestLateJoin(t *testing.T) {
	w := devices(t, 2)
	meeting := &tellingStore{Local: store.NewLocal(), word: "/turn/", deaf: true, set: make(chan struct{})}
	of := func(rank int) hccl.Config {
		return hccl.Config{Rank: rank, Size: 2, Device: w.devices[rank], Store: meeting, Namespace: "late"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		var err error
		w.comms[0], err = hccl.New(ctx, of(0))
		first <- err
	}()
	second := make(chan error)
	go func() {
		var err error
		w.comms[1], err = hccl.New(t.Context(), of(1))
		second <- err
	}()
	<-meeting.set
	cancel()
	gaveUp := <-first
	require.NoError(t, <-second)
	if w.comms[0] == nil { // else it came before rank 0 looked
		require.ErrorIs(t, gaveUp, context.Canceled)
	}
}

// TestJoinWaitsForTheDevice: a rank whose device makes another communicator waits
// for it as long as a call may.
func TestJoinWaitsForTheDevice(t *testing.T) {
	w := devices(t, 1)
	w.devices[0].Joining <- struct{}{}
	defer func() { <-w.devices[0].Joining }()
	_, err := hccl.New(t.Context(), hccl.Config{Size: 1, Device: w.devices[0], Store: store.NewLocal(), Namespace: "taken", Timeout: time.Millisecond})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "its device makes another one")
}

// TestMissingRank: the first rank loses patience with one that does not come, and
// says so to the others, which have more.
func TestMissingRank(t *testing.T) {
	w := devices(t, 2)
	meeting := &tellingStore{Local: store.NewLocal(), word: "/here/", set: make(chan struct{})}
	var all errgroup.Group
	for r, d := range w.devices {
		all.Go(func() error {
			c := hccl.Config{Rank: r, Size: 3, Device: d, Store: meeting, Namespace: "missing", Timeout: time.Minute}
			if r == 0 {
				<-meeting.set // by rank 1
				c.Timeout = time.Millisecond
			}
			_, err := hccl.New(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), "peer 2: it has not come: waited 1ms") {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}

// TestHeldInLibrary: a rank whose peer never enters the library, where it waits itself,
// ends at its time-out all the same, and leaves its device as it is.
func TestHeldInLibrary(t *testing.T) {
	out, err := ascendsim.Again(t, "", "^TestHeld$", "ASCENDSIM_CONNECT_TIMEOUT_MS=8000", "ASCEND_TEST_FAULTS=1")
	require.NoError(t, err, "%s", out)
}

// TestHeld runs in TestHeldInLibrary.
func TestHeld(t *testing.T) {
	if !inFault(t) {
		return
	}
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err)
	d, err := l.Open(0)
	require.NoError(t, err)
	meeting := store.NewLocal()
	require.NoError(t, meeting.Set(t.Context(), "held/hccl/0/world/here/1", nil)) // what rank 1 says before it hangs
	_, err = hccl.New(t.Context(), hccl.Config{Size: 2, Device: d, Store: meeting, Namespace: "held", Timeout: 100 * time.Millisecond})
	var peer *collective.PeerError
	require.ErrorAs(t, err, &peer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "rank 0, group world (joining): the library has not made it: waited 100ms")
	require.NoError(t, d.Close())
	require.NoError(t, l.Close())
	require.Len(t, d.Joining, 1, "it came back from the library without the time-out")
	require.NotZero(t, alive(l, "contexts"), "a context ended while a thread in the library had it")
	d.Joining <- struct{}{} // when the library gives up
}

// TestOrders: a rank that sends on one Comm, and then on another, meets one that receives
// on the latter first: it must not wait for that one with its device taken.
func TestOrders(t *testing.T) {
	w := start(t, 2)
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		sub, err := c.Sub(ctx, []int{0, 1})
		if err != nil {
			return err
		}
		message := []collective.PointToPoint{{Peer: 1 - c.Rank(), Recv: c.Rank() == 1, Buf: device.FromF32(make([]float32, 4))}}
		if c.Rank() == 0 {
			first := c.Exchange(ctx, message)
			return errors.Join(sub.Exchange(ctx, message).Wait(ctx), first.Wait(ctx), collective.Barrier(ctx, c), sub.Close())
		}
		if err := sub.Exchange(ctx, message).Wait(ctx); err != nil {
			return err
		}
		return errors.Join(c.Exchange(ctx, message).Wait(ctx), collective.Barrier(ctx, c), sub.Close())
	}) {
		require.NoError(t, err)
	}
}
