//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/store"
)

// join makes a world of n ranks of this process, which meet in a store of their
// own.
func join(tb testing.TB, n int, change func(*Config)) ([]*Transport, error) {
	tb.Helper()
	server, err := store.Listen(context.Background(), "127.0.0.1:0", "secret")
	require.NoError(tb, err)
	defer server.Close()
	ranks := make([]*Transport, n)
	var all errgroup.Group
	for rank := range n {
		all.Go(func() error {
			client, err := store.Dial(context.Background(), server.Addr().String(), "secret")
			if err != nil {
				return err
			}
			defer client.Close()
			c := Config{Rank: rank, Size: n, Store: client, Namespace: "test", Token: "secret",
				Refused: func(err error) { tb.Errorf("rank %d refused: %v", rank, err) }}
			if change != nil {
				change(&c)
			}
			ranks[rank], err = Join(context.Background(), c)
			return err
		})
	}
	err = all.Wait()
	return ranks, err
}

// world is join for tests that need it to succeed.
func world(tb testing.TB, n int) []*Transport {
	tb.Helper()
	ranks, err := join(tb, n, nil)
	require.NoError(tb, err)
	return ranks
}

func connect(tb testing.TB, n int) []collective.Transport {
	var ranks []collective.Transport
	for _, t := range world(tb, n) {
		ranks = append(ranks, t)
	}
	return ranks
}

func closeAllRanks(tb testing.TB, ranks []*Transport) {
	tb.Helper()
	var all errgroup.Group
	for _, r := range ranks {
		all.Go(r.Close)
	}
	require.NoError(tb, all.Wait())
}

const (
	testTimeout  = 10 * time.Second // the groups' in this package
	hastyTimeout = testTimeout / 5  // where it is due to end a call
)

func TestMain(m *testing.M) {
	if description := os.Getenv(roleVariable); description != "" {
		if err := runRole(description); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) { commtest.Run(t, connect) }
