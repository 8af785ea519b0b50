package tcp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/store"
)

// patience is how long tests wait for what does not come: long enough for what
// comes before, on a machine that is busy.
const patience = time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// join makes a world of n ranks that meet in a store of their own.
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
				Refused: func(remote net.Addr, err error) { tb.Errorf("rank %d refused %v: %v", rank, remote, err) }}
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

func closeAll(tb testing.TB, ranks []*Transport) {
	tb.Helper()
	var all errgroup.Group
	for _, r := range ranks {
		all.Go(r.Close)
	}
	require.NoError(tb, all.Wait())
}

func TestConformance(t *testing.T) {
	commtest.Run(t, func(tb testing.TB, n int) []collective.Transport {
		ranks := world(tb, n)
		transports := make([]collective.Transport, n)
		for i, r := range ranks {
			transports[i] = r
		}
		return transports
	})
}

// TestConformanceOfVariants: what is configured changes nothing of the contract.
func TestConformanceOfVariants(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"three sockets":   func(c *Config) { c.Sockets, c.Segment, c.Buffer = 3, 100_000, 1<<20 },
		"checksums, busy": func(c *Config) { c.Checksum, c.Retry, c.Busy = true, 3, true },
		"encrypted":       func(c *Config) { c.TLS, c.Sockets, c.Retry = &TLS{}, 2, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			connect := func(tb testing.TB, n int) []collective.Transport {
				ranks, err := join(tb, n, change)
				require.NoError(tb, err)
				transports := make([]collective.Transport, n)
				for i, r := range ranks {
					transports[i] = r
				}
				return transports
			}
			commtest.Transports(t, connect)
			commtest.Packed(t, connect)
		})
	}
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}
