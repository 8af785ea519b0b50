package mixed

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/collective/tcp"
)

// meet runs f on every rank of a world with its Config; machine places ranks.
func meet(tb testing.TB, n int, machine func(rank int) int, f func(ctx context.Context, rank int, c Config) error) error {
	tb.Helper()
	server, err := store.Listen(tb.Context(), "127.0.0.1:0", "secret")
	require.NoError(tb, err)
	defer server.Close()
	all, ctx := errgroup.WithContext(tb.Context())
	for rank := range n {
		all.Go(func() error {
			client, err := store.Dial(ctx, server.Addr().String(), "secret")
			if err != nil {
				return err
			}
			defer client.Close()
			return f(ctx, rank, Config{
				Machine: fmt.Sprint(machine(rank)),
				Refused: func(err error) { tb.Errorf("rank %d refused: %v", rank, err) },
				TCP: tcp.Config{Rank: rank, Size: n, Store: client, Namespace: "test", Token: "secret",
					Refused: func(remote net.Addr, err error) { tb.Errorf("rank %d refused %v: %v", rank, remote, err) }},
			})
		})
	}
	return all.Wait()
}

// world makes n connected ranks on the hosts that machine gives them.
func world(tb testing.TB, n int, machine func(rank int) int) []collective.Transport {
	tb.Helper()
	return worldWith(tb, n, machine, func(*Config) {})
}

// worldWith is world with other settings.
func worldWith(tb testing.TB, n int, machine func(rank int) int, change func(*Config)) []collective.Transport {
	tb.Helper()
	ranks := make([]collective.Transport, n)
	require.NoError(tb, meet(tb, n, machine, func(ctx context.Context, rank int, c Config) error {
		change(&c)
		hosts, err := Hosts(ctx, c)
		if err != nil {
			return err
		}
		t, err := Join(ctx, c, hosts)
		if err != nil {
			return err
		}
		ranks[rank] = t
		return t.Why()
	}))
	return ranks
}

// everyThird is a machine of the ranks 1, 4, 7, ... and one of the others.
func everyThird(rank int) int {
	if rank%3 == 1 {
		return 1
	}
	return 0
}

// TestConformance leaves the groups out where time is short: what they would race
// over is the two transports', and tested there.
func TestConformance(t *testing.T) {
	connect := func(tb testing.TB, n int) []collective.Transport { return world(tb, n, everyThird) }
	if testing.Short() {
		commtest.Transports(t, connect)
		return
	}
	commtest.Run(t, connect)
}
