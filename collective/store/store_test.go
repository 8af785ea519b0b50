package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, token string) *Server {
	t.Helper()
	s, err := Listen(t.Context(), "127.0.0.1:0", token)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func dial(t *testing.T, s *Server, token string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), s.Addr().String(), token)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestSetGetDelete(t *testing.T) {
	s := serve(t, "secret")
	a, b := dial(t, s, "secret"), dial(t, s, "secret")
	ctx := t.Context()
	require.NoError(t, a.Set(ctx, "k", []byte("v")))
	got, err := b.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got))
	require.NoError(t, b.Set(ctx, "k2", nil))
	keys, err := a.Keys(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, []string{"k", "k2"}, keys)
	was, err := a.Delete(ctx, "k")
	require.NoError(t, err)
	require.True(t, was)
	was, err = a.Delete(ctx, "k")
	require.NoError(t, err)
	require.False(t, was)
	keys, err = a.Keys(ctx, "x")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestLargeValue(t *testing.T) {
	s := serve(t, "")
	c := dial(t, s, "")
	v := make([]byte, 5<<20)
	v[len(v)-1] = 7
	require.NoError(t, c.Set(t.Context(), "big", v))
	got, err := c.Get(t.Context(), "big")
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.ErrorContains(t, c.Set(t.Context(), "bigger", make([]byte, MaxFrame)), "bigger")
	// The answer would not fit although each value does.
	for i := range 4 {
		require.NoError(t, c.Set(t.Context(), fmt.Sprint("part", i), v))
	}
	_, err = c.Wait(t.Context(), "part0", "part1", "part2", "part3")
	require.ErrorContains(t, err, "larger than a frame")
	_, err = c.Get(t.Context(), "part3")
	require.NoError(t, err, "the connection survives a refusal")
}

func TestGetWaits(t *testing.T) {
	s := serve(t, "")
	a, b := dial(t, s, ""), dial(t, s, "")
	result := make(chan []byte, 1)
	go func() {
		values, err := a.Wait(t.Context(), "one", "two", "one")
		if err != nil || len(values) != 3 {
			result <- nil
			return
		}
		result <- append(values[0], values[1]...)
	}()
	require.NoError(t, b.Set(t.Context(), "two", []byte("2")))
	require.NoError(t, b.Set(t.Context(), "one", []byte("1")))
	require.Equal(t, "12", string(<-result))
}

func TestTimeOutNamesMissingKeys(t *testing.T) {
	s := serve(t, "")
	c := dial(t, s, "")
	require.NoError(t, c.Set(t.Context(), "rank/0", nil))
	require.NoError(t, c.Set(t.Context(), "rank/2", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Wait(ctx, "rank/0", "rank/1", "rank/2", "rank/3")
	var wait *WaitError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, []string{"rank/1", "rank/3"}, wait.Missing)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, err.Error(), s.Addr().String())
	require.NotContains(t, err.Error(), "rank/2")
	// A cancelled wait leaves nothing behind, and the client goes on.
	require.NoError(t, c.Set(t.Context(), "rank/1", []byte("x")))
	require.NoError(t, c.Set(t.Context(), "rank/3", []byte("y")))
	_, err = c.Wait(t.Context(), "rank/1", "rank/3")
	require.NoError(t, err)
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	require.Empty(t, s.table.waiting)
}

func TestCounter(t *testing.T) {
	s := serve(t, "")
	var group sync.WaitGroup
	c := dial(t, s, "")
	seen := make([]bool, 101)
	var mu sync.Mutex
	for range 10 {
		group.Go(func() {
			for range 10 {
				n, err := c.Add(t.Context(), "n", 1)
				mu.Lock()
				if err == nil {
					seen[n] = true
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for n := 1; n <= 100; n++ {
		require.True(t, seen[n], "%d was handed out", n)
	}
	got, err := c.Get(t.Context(), "n")
	require.NoError(t, err)
	require.Equal(t, "100", string(got))
	require.NoError(t, c.Set(t.Context(), "text", []byte("abc")))
	_, err = c.Add(t.Context(), "text", 1)
	require.ErrorContains(t, err, "key text holds no counter")
}

func TestWrongToken(t *testing.T) {
	s := serve(t, "secret")
	_, err := Dial(t.Context(), s.Addr().String(), "guess")
	require.ErrorIs(t, err, ErrToken)
	require.ErrorContains(t, err, s.Addr().String())
	require.ErrorContains(t, err, "GRADFUSION_TOKEN")
	dial(t, s, "secret")
}

func TestWillIsCarriedOutOnlyAfterABreak(t *testing.T) {
	s := serve(t, "")
	watcher := dial(t, s, "")
	dying, err := Dial(t.Context(), s.Addr().String(), "")
	require.NoError(t, err)
	leaving, err := Dial(t.Context(), s.Addr().String(), "")
	require.NoError(t, err)
	require.NoError(t, dying.Will(t.Context(), "dead/1", []byte("rank 1")))
	require.NoError(t, leaving.Will(t.Context(), "dead/2", nil))
	require.NoError(t, leaving.Close())
	_ = dying.conn.Close()
	got, err := watcher.Get(t.Context(), "dead/1")
	require.NoError(t, err)
	require.Equal(t, "rank 1", string(got))
	require.NoError(t, dying.Close())
	require.NoError(t, watcher.Close())
	require.NoError(t, s.Drain(t.Context()))
	require.Equal(t, []string{"dead/1"}, s.table.keys("dead/"))
}

func TestServerGone(t *testing.T) {
	s := serve(t, "")
	c := dial(t, s, "")
	result := make(chan error, 1)
	go func() {
		_, err := c.Get(t.Context(), "never")
		result <- err
	}()
	require.NoError(t, s.Close())
	require.ErrorContains(t, <-result, "connection lost")
	<-c.Done()
	require.ErrorContains(t, c.Set(t.Context(), "k", nil), "key k")
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
}

func TestClosedClient(t *testing.T) {
	s := serve(t, "")
	c := dial(t, s, "")
	require.NoError(t, c.Close())
	_, err := c.Get(t.Context(), "k")
	require.ErrorIs(t, err, ErrClosed)
}

func TestStrangers(t *testing.T) {
	s := serve(t, "secret")
	for _, garbage := range []string{"", "x", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", purpose + strings.Repeat("x", 200), strings.Repeat("\xff", 4096)} {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		_, _ = conn.Write([]byte(garbage))
		_ = conn.(*net.TCPConn).CloseWrite() // it may have hung up
		_, _ = io.Copy(io.Discard, conn)     // until the server hangs up
		_ = conn.Close()
	}
	// One who has the token but then talks nonsense loses his connection, only.
	c := dial(t, s, "secret")
	bad, err := Dial(t.Context(), s.Addr().String(), "secret")
	require.NoError(t, err)
	_, _ = bad.conn.Write([]byte("nonsense, nonsense"))
	<-bad.Done()
	require.NoError(t, bad.Close())
	require.NoError(t, c.Set(t.Context(), "k", nil))
}

func TestSilentStrangersDoNotHoldUpAJob(t *testing.T) {
	s := serve(t, "")
	for range 20 {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
	}
	require.NoError(t, dial(t, s, "").Set(t.Context(), "k", nil))
}

func TestAddressInUse(t *testing.T) {
	s := serve(t, "")
	_, err := Listen(t.Context(), s.Addr().String(), "")
	require.ErrorContains(t, err, s.Addr().String()+" is in use")
	require.ErrorContains(t, err, "choose another port")
	_, err = Listen(t.Context(), "192.0.2.1:0", "") // TEST-NET: nobody's address
	require.ErrorContains(t, err, "not one of this host's")
}

func TestBindsOnlyWhatItIsTold(t *testing.T) {
	s := serve(t, "")
	require.True(t, s.Addr().(*net.TCPAddr).IP.IsLoopback())
}

func TestDialWaitsForTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	result := make(chan error, 1)
	go func() {
		c, err := Dial(t.Context(), address, "")
		if err == nil {
			err = c.Close()
		}
		result <- err
	}()
	s, err := Listen(t.Context(), address, "")
	require.NoError(t, err)
	require.NoError(t, <-result)
	require.NoError(t, s.Close())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, address, "")
	require.ErrorContains(t, err, address+": not reachable")
}

func TestDrainTimesOut(t *testing.T) {
	s := serve(t, "")
	c := dial(t, s, "")
	require.NoError(t, c.Set(t.Context(), "k", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Drain(ctx)
	require.True(t, errors.Is(err, context.Canceled))
	require.ErrorContains(t, err, "1 clients are still connected")
}

// TestManyStrangers: more silent connections than there is place for do not
// hold up a client.
func TestManyStrangers(t *testing.T) {
	server, err := Listen(t.Context(), "127.0.0.1:0", "secret")
	require.NoError(t, err)
	var strangers []net.Conn
	for range maxStrangers + 50 {
		conn, err := net.Dial("tcp", server.Addr().String())
		require.NoError(t, err)
		strangers = append(strangers, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), greetingTime/2)
	defer cancel()
	client, err := Dial(ctx, server.Addr().String(), "secret")
	require.NoError(t, err)
	require.NoError(t, client.Set(ctx, "key", nil))
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
	for _, conn := range strangers {
		require.NoError(t, conn.Close())
	}
}
