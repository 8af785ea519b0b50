package tcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
)

func yield() { runtime.Gosched() }

// die ends a rank as its process's death would: sockets close, nobody says why.
func die(t *testing.T, r *Transport, reset bool) {
	t.Helper()
	_ = r.door.listener.Close() // closed already unless connections may be repaired
	for _, s := range r.sockets() {
		if reset {
			require.NoError(t, s.tcp.SetLinger(0))
		}
		require.NoError(t, s.conn.Close())
	}
}

func TestDeathFailsEveryCall(t *testing.T) {
	for name, reset := range map[string]bool{"ended": false, "reset": true} {
		t.Run(name, func(t *testing.T) {
			ranks := world(t, 3)
			b := make([]byte, 1<<20)
			pending := []func() error{
				func() error { return ranks[0].Recv(t.Context(), 2, 1, b[:10]) },
				func() error { return ranks[0].Recv(t.Context(), 1, 1, b[:10]) }, // from one who lives
				func() error { return ranks[0].Recv(t.Context(), 0, 1, b[:10]) }, // from itself
				func() error { return ranks[0].Send(t.Context(), 2, 2, b) },
				func() error { return ranks[0].Send(t.Context(), 1, 2, b) },
				func() error { return ranks[0].Send(t.Context(), 0, 2, b) },
			}
			results := make(chan error, len(pending))
			for _, call := range pending {
				go func() { results <- call() }()
			}
			l := ranks[0].links[2]
			until(t, l, func() bool { return len(l.sends) > 0 && l.queues[1] != nil })
			die(t, ranks[2], reset)
			var lost *collective.LinkError
			for range pending {
				require.ErrorAs(t, <-results, &lost)
				require.Equal(t, 2, lost.Peer)
				require.Equal(t, 0, lost.Rank)
			}
			for _, call := range pending {
				require.ErrorAs(t, call(), &lost)
			}
			require.ErrorContains(t, ranks[1].Recv(t.Context(), 2, 1, nil), "rank 1 lost rank 2: its connection")
			closeAll(t, ranks)
		})
	}
}

func TestLeaving(t *testing.T) {
	ranks := world(t, 3)
	big := pattern(1<<20, 1)
	require.NoError(t, ranks[2].Send(t.Context(), 0, 1, []byte("last words")))
	pending := make(chan error, 2)
	go func() { pending <- ranks[0].Recv(t.Context(), 2, 7, nil) }()
	go func() { pending <- ranks[0].Send(t.Context(), 2, 7, big) }()
	l := ranks[0].links[2]
	until(t, l, func() bool { return len(l.sends) > 0 && l.queues[7] != nil })
	require.NoError(t, ranks[2].Close())
	for range 2 {
		err := <-pending
		var lost *collective.LinkError
		require.ErrorAs(t, err, &lost)
		require.ErrorContains(t, err, "rank 2 has left")
	}
	b := make([]byte, 10)
	require.NoError(t, ranks[0].Recv(t.Context(), 2, 1, b))
	require.Equal(t, "last words", string(b))
	require.ErrorContains(t, ranks[0].Recv(t.Context(), 2, 1, b), "rank 2 has left")
	require.ErrorContains(t, ranks[1].Send(t.Context(), 2, 1, big), "rank 2 has left")
	// The others go on.
	var both errgroup.Group
	both.Go(func() error { return ranks[0].Send(t.Context(), 1, 1, big) })
	got := make([]byte, len(big))
	require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, got))
	require.NoError(t, both.Wait())
	require.Equal(t, big, got)
	require.NoError(t, ranks[0].Close())
	require.NoError(t, ranks[1].Close())
}

// TestLeavingNamesTheCulprit: a rank that closes because it lost another says so.
func TestLeavingNamesTheCulprit(t *testing.T) {
	ranks := world(t, 3)
	ranks[1].fail(2, errors.New("cut off"))
	require.NoError(t, ranks[1].Close())
	require.ErrorContains(t, ranks[0].Recv(t.Context(), 1, 1, nil), "rank 1 has left, having lost rank 2")
	closeAll(t, ranks)
}

// TestCloseDeliversWhatWasSent although the receiver asks only afterwards.
func TestCloseDeliversWhatWasSent(t *testing.T) {
	ranks := world(t, 2)
	const count = 200
	for i := range count {
		require.NoError(t, ranks[0].Send(t.Context(), 1, 1, pattern(60_000, i)))
	}
	require.NoError(t, ranks[0].Close())
	b := make([]byte, 60_000)
	for i := range count {
		require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, b))
		require.Equal(t, pattern(60_000, i), b)
	}
	require.NoError(t, ranks[1].Close())
}

// TestEagerLimit: beyond the credit a small send waits for its receiver, and
// credit comes back.
func TestEagerLimit(t *testing.T) {
	ranks := world(t, 2)
	ranks[0].links[1].credit = 10_000 // as if most were spent
	b := make([]byte, 4000)
	for range 2 {
		require.NoError(t, ranks[0].Send(t.Context(), 1, 1, b))
	}
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- ranks[0].Send(ctx, 1, 1, b) }()
	l := ranks[1].links[0]
	until(t, l, func() bool { return l.queues[1] != nil && l.queues[1].lastArr.eager == nil })
	cancel()
	require.ErrorIs(t, <-sent, context.Canceled)
	go func() { sent <- ranks[0].Send(t.Context(), 1, 1, b) }()
	got := make([]byte, len(b))
	for range 3 {
		require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, got))
	}
	require.NoError(t, <-sent)
	closeAll(t, ranks)
}

// TestRandomCancels throws messages of all sizes at one another and cancels many
// of the calls on either side. Whoever succeeds has the right bytes, and in the
// end the links are as good as new.
func TestRandomCancels(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	ranks := world(t, 3)
	var all errgroup.Group
	all.SetLimit(24)
	random := rand.New(rand.NewPCG(seed, 0))
	sizes := []int{0, 100, eagerMax, eagerMax + 1, 300_000, 3 << 20}
	for i := range 600 {
		tag := collective.Tag(i)
		from, to := random.IntN(3), random.IntN(3)
		size := sizes[random.IntN(len(sizes))]
		patience := [2]int{random.IntN(2000), random.IntN(2000)} // yields; above 1000: endless
		all.Go(func() error {
			want := pattern(size, i)
			sending, stopSend := context.WithCancel(t.Context())
			receiving, stopReceive := context.WithCancel(t.Context())
			defer stopSend()
			defer stopReceive()
			stop := [2]func(){stopSend, stopReceive}
			for side, n := range patience {
				if n > 1000 {
					continue
				}
				go func() {
					for range n {
						yield()
					}
					stop[side]()
				}()
			}
			var both errgroup.Group
			var sent, received error
			got := make([]byte, size)
			both.Go(func() error {
				if sent = ranks[from].Send(sending, to, tag, want); sent != nil {
					stopReceive() // it would wait for ever
				}
				return nil
			})
			both.Go(func() error {
				if received = ranks[to].Recv(receiving, from, tag, got); received != nil {
					stopSend()
				}
				return nil
			})
			_ = both.Wait()
			var lost *collective.LinkError
			switch {
			case received == nil && string(got) != string(want):
				return errors.New("wrong bytes")
			case sent != nil && !errors.Is(sent, context.Canceled):
				return sent
			case received != nil && !errors.Is(received, context.Canceled) && !errors.As(received, &lost):
				return received
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for from := range ranks {
		for to := range ranks {
			var both errgroup.Group
			want := pattern(2<<20, from*3+to)
			both.Go(func() error { return ranks[from].Send(t.Context(), to, 1<<40, want) })
			got := make([]byte, len(want))
			require.NoError(t, ranks[to].Recv(t.Context(), from, 1<<40, got))
			require.NoError(t, both.Wait())
			require.Equal(t, want, got)
		}
	}
	for _, r := range ranks {
		for _, l := range r.links {
			until(t, l, func() bool { return l.sends == nil || len(l.freeIDs) == len(l.sends) })
			until(t, l, func() bool { return !slices.ContainsFunc(l.slots, func(s slot) bool { return s.used }) })
			for _, q := range l.queues {
				require.Nil(t, q.receives, "a receive is left")
				for a := q.arrivals; a != nil; a = a.next {
					require.NotNil(t, a.eager, "an announcement is left")
				}
			}
		}
	}
	closeAll(t, ranks)
}
