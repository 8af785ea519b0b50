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
