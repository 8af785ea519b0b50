package tcp

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCloseOnSlowLinks: what was sent arrives although that takes longer than Close
// waits for a peer that takes nothing.
func TestCloseOnSlowLinks(t *testing.T) {
	const count, size, rate = 200, 60_000, 5e6 // 2.4 s
	ranks, _ := behind(t, 2, slow(rate), func(*Config) {})
	closed := make(chan error, 1)
	go func() {
		for i := range count {
			if err := ranks[0].Send(t.Context(), 1, 1, pattern(size, i)); err != nil {
				closed <- err
				return
			}
		}
		closed <- ranks[0].Close()
	}()
	b := make([]byte, size)
	for i := range count {
		require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, b), "message %d", i)
		require.Equal(t, pattern(size, i), b)
	}
	require.NoError(t, <-closed)
	closeAll(t, ranks)
}

// TestCloseOfATrickle: a peer's host that takes some bytes every second, for days, holds
// Close until the calls' time-out at most.
func TestCloseOfATrickle(t *testing.T) {
	const count, size = 200, 60_000
	ranks, p := behind(t, 2, trickling, func(c *Config) { c.Patience = 2 * time.Second })
	for i := range count {
		require.NoError(t, ranks[0].Send(t.Context(), 1, 1, pattern(size, i)))
	}
	require.NoError(t, ranks[0].Close())
	p.close()
	require.NoError(t, ranks[1].Close())
}

// trickling forwards greetings, and then a byte now and then.
func trickling(_ *rand.Rand, to, from net.Conn) {
	_ = from.(*net.TCPConn).SetReadBuffer(4 << 10)
	b, passed := make([]byte, 512), 0
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
		if passed += n; passed > 64<<10 {
			b = b[:1]
			<-time.After(10 * time.Millisecond)
		}
	}
}

// TestWaiting: what moves is waited for, if it can be done in time.
func TestWaiting(t *testing.T) {
	const second = uint64(1)
	for _, tt := range []struct {
		name    string
		owed    uint64
		taken   func(second uint64) uint64
		seconds int // until it is over
	}{
		{"nothing", 100, func(uint64) uint64 { return 0 }, 1},
		{"all at once, and no farewell", 100, func(uint64) uint64 { return 100 }, 2},
		{"a trickle", 1 << 20, func(s uint64) uint64 { return s }, 5},
		{"just in time", 590, func(s uint64) uint64 { return 10 * s }, 60},
		{"just too late", 610, func(s uint64) uint64 { return 10 * s }, 5},
		{"slower later", 1000, func(s uint64) uint64 { return min(s, 5)*60 + s*4 }, 24}, // 604 are left, at 16.5 a second 36.6 s of 36
		{"a new connection, of the last 220", 1000, func(s uint64) uint64 {
			if s < 40 {
				return 20 * s
			}
			return min(20*(s-40), 220)
		}, 52},
		{"more than is known", 10, func(s uint64) uint64 { return 20 * s }, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			p := &waiting{limit: time.Minute, start: start, moving: start, from: start, owed: tt.owed}
			for s := second; ; s++ {
				taken := tt.taken(s)
				if _, over := p.look(start.Add(time.Duration(s)*time.Second), taken, taken, func() uint64 { return 220 }); over {
					require.EqualValues(t, tt.seconds, s)
					return
				}
			}
		})
	}
}

// TestWaitingWithoutProcessor: a process that did not get to run for long has not waited
// for its peers so long.
func TestWaitingWithoutProcessor(t *testing.T) {
	start := time.Now()
	p := &waiting{limit: time.Minute, start: start, moving: start, from: start, seen: start, clock: start, owed: 100}
	nothing := func(now time.Time) bool {
		_, over := p.look(p.own(now), 0, 0, func() uint64 { return 0 })
		return over
	}
	late := start.Add(time.Hour)
	require.False(t, nothing(late))
	for i := 1; i < 18; i++ {
		require.False(t, nothing(late.Add(time.Duration(i)*lookTime)))
	}
	require.True(t, nothing(late.Add(18*lookTime)))
}

// slow forwards so many bytes a second and keeps few of them.
func slow(rate float64) func(*rand.Rand, net.Conn, net.Conn) {
	return func(_ *rand.Rand, to, from net.Conn) {
		_ = from.(*net.TCPConn).SetReadBuffer(32 << 10)
		_ = to.(*net.TCPConn).SetWriteBuffer(32 << 10)
		b := make([]byte, 32<<10)
		start, passed := time.Now(), 0.0
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
			if passed += float64(n); n > 4096 {
				<-time.After(time.Until(start.Add(time.Duration(passed / rate * 1e9))))
			}
		}
	}
}
