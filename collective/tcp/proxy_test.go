package tcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// proxies stand between ranks.
type proxies struct {
	// pass forwards bytes of a connection until it wants to cut it.
	pass func(random *rand.Rand, to, from net.Conn)
	seed uint64

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[net.Conn]bool
	closed    bool
	all       sync.WaitGroup
	cuts      atomic.Int64
}

// proxyStore publishes a proxy's address in place of the rank's.
type proxyStore struct {
	Store
	proxies *proxies
}

func (s proxyStore) Set(ctx context.Context, key string, value []byte) error {
	p := s.proxies
	address, rest, _ := strings.Cut(string(value), "\n")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listeners = append(p.listeners, listener)
	p.mu.Unlock()
	p.all.Go(func() { p.serve(listener, address) })
	return s.Store.Set(ctx, key, []byte(listener.Addr().String()+"\n"+rest))
}

func (p *proxies) serve(listener net.Listener, address string) {
	for n := uint64(0); ; n++ {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", address)
		if err != nil { // as the rank itself would answer
			_ = near.(*net.TCPConn).SetLinger(0)
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns[near], p.conns[far] = true, true
		if p.closed {
			_, _ = near.Close(), far.Close()
		}
		p.mu.Unlock()
		for i, ends := range [][2]net.Conn{{near, far}, {far, near}} {
			random := rand.New(rand.NewPCG(p.seed+n, uint64(i)))
			p.all.Go(func() {
				p.pass(random, ends[0], ends[1])
				p.cuts.Add(1)
				if random.IntN(2) == 0 {
					_ = near.(*net.TCPConn).SetLinger(0)
					_ = far.(*net.TCPConn).SetLinger(0)
				}
				_, _ = near.Close(), far.Close()
			})
		}
	}
}

func (p *proxies) close() {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.listeners {
		_ = l.Close()
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// behind is a world whose ranks talk through proxies.
func behind(t *testing.T, n int, pass func(*rand.Rand, net.Conn, net.Conn), change func(*Config)) ([]*Transport, *proxies) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &proxies{pass: pass, seed: seed, conns: map[net.Conn]bool{}}
	t.Cleanup(p.close)
	ranks, err := join(t, n, func(c *Config) {
		c.Refused = nil // connections are cut in their greetings
		c.Store = proxyStore{c.Store, p}
		change(c)
	})
	require.NoError(t, err)
	return ranks, p
}

// cutting forwards a random number of bytes.
func cutting(most int) func(*rand.Rand, net.Conn, net.Conn) {
	return func(random *rand.Rand, to, from net.Conn) {
		_, _ = io.CopyN(to, from, int64(100+random.IntN(most)))
	}
}

// TestCutConnections: connections break after random bytes, thousands of
// messages arrive whole, once and in order.
func TestCutConnections(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
	}{
		{"plain", func(c *Config) {}},
		{"four sockets", func(c *Config) { c.Sockets = 4 }},
		{"checksums", func(c *Config) { c.Checksum = true }},
		{"encrypted", func(c *Config) { c.TLS, c.Checksum = &TLS{}, true }},
	} {
		for _, most := range []int{100_000, 2 << 20} {
			if c.name == "encrypted" && most < 1<<20 {
				continue // handshakes would take most of it
			}
			t.Run(fmt.Sprintf("%s within %d bytes", c.name, most), func(t *testing.T) {
				ranks, p := behind(t, 3, cutting(most), func(cfg *Config) {
					cfg.Retry = 50
					cfg.Segment = most / 8
					c.change(cfg)
				})
				traffic(t, ranks, 200)
				if most > 1<<20 {
					packedBroadcast(t, ranks)
				}
				closeAll(t, ranks)
				t.Logf("%d cuts", p.cuts.Load()/2)
				require.Greater(t, p.cuts.Load(), int64(20))
			})
		}
	}
}

// TestCorruptedBytes: with checksums, whatever bit changes on its way, nothing
// wrong is received, and the error says what.
func TestCorruptedBytes(t *testing.T) {
	for at := 400; at < 400_000; at = at*3/2 + 7 {
		var done atomic.Bool
		ranks, _ := behind(t, 2, func(random *rand.Rand, to, from net.Conn) {
			if _, err := io.CopyN(to, from, int64(at)); err == nil && done.CompareAndSwap(false, true) {
				var b [1]byte
				if _, err := io.ReadFull(from, b[:]); err == nil {
					b[0] ^= 1 << random.IntN(8)
					_, _ = to.Write(b[:])
				}
			}
			_, _ = io.Copy(to, from)
		}, func(c *Config) { c.Checksum, c.Retry = true, 3 })
		var both errgroup.Group
		failed := make(chan error, 2)
		for rank := range 2 {
			both.Go(func() error {
				for i := range 1000 {
					if err := ranks[rank].Send(t.Context(), 1-rank, 7, pattern(1000*(i%3)+i%2*100_000, i)); err != nil {
						failed <- err
						return ranks[rank].Close() // which tells the other
					}
				}
				return errors.New("the changed byte has harmed nobody")
			})
			both.Go(func() error {
				for i := 0; ; i++ {
					want := pattern(1000*(i%3)+i%2*100_000, i)
					got := make([]byte, len(want))
					if err := ranks[rank].Recv(t.Context(), 1-rank, 7, got); err != nil {
						return nil
					}
					if !bytes.Equal(got, want) {
						return fmt.Errorf("message %d is wrong", i)
					}
				}
			})
		}
		require.NoError(t, both.Wait(), "byte %d changed", at)
		texts := (<-failed).Error() + "; " + (<-failed).Error()
		require.Regexp(t, `rank [01] lost rank [01]: corrupt stream: the checksum of (a header|a message of \d+ bytes with tag 0x7|\d+ bytes of a message with tag 0x7) from rank`, texts)
		closeAll(t, ranks)
	}
}

// TestDeathInsteadOfCut: a peer that no longer listens is given up at once,
// whatever retries there are.
func TestDeathInsteadOfCut(t *testing.T) {
	for _, dead := range []int{0, 2} { // one whom others dial, one who dials
		ranks, err := join(t, 3, func(c *Config) { c.Retry = 1000 })
		require.NoError(t, err)
		ranks[dead].stop()
		die(t, ranks[dead], false)
		err = ranks[1].Recv(t.Context(), dead, 1, nil)
		require.ErrorContains(t, err, fmt.Sprintf("rank 1 lost rank %d: its connection ended without a goodbye, and it no longer listens (has its process died?)", dead))
		closeAll(t, ranks)
	}
}

// TestRetriesEnd: a peer that listens but whose connections always break is
// given up after so many attempts.
func TestRetriesEnd(t *testing.T) {
	var broken atomic.Bool
	ranks, _ := behind(t, 2, func(_ *rand.Rand, to, from net.Conn) {
		b := make([]byte, 1000)
		for !broken.Load() {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			_, _ = to.Write(b[:n])
		}
	}, func(c *Config) { c.Retry = 2 })
	require.NoError(t, ranks[0].Send(t.Context(), 1, 1, nil))
	require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, nil))
	broken.Store(true)
	require.NoError(t, ranks[0].Send(t.Context(), 1, 1, nil))
	require.ErrorContains(t, ranks[1].Recv(t.Context(), 0, 2, nil), "and 2 attempts to build it up again failed, the last because:")
	closeAll(t, ranks)
}
