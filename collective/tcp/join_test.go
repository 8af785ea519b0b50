package tcp

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/store"
)

// held is a store of the test's own.
func held(t *testing.T) *store.Client {
	t.Helper()
	server, err := store.Listen(t.Context(), "127.0.0.1:0", "")
	require.NoError(t, err)
	client, err := store.Dial(t.Context(), server.Addr().String(), "")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
	return client
}

func TestJoinAlone(t *testing.T) {
	r, err := Join(t.Context(), Config{Size: 1})
	require.NoError(t, err)
	require.Equal(t, [][]int{{0}}, r.Hosts())
	require.NoError(t, r.Close())
}

func TestJoinNamesMissingRanks(t *testing.T) {
	t.Parallel()
	client := held(t)
	c := Config{Rank: 1, Size: 5, Store: client, Namespace: "job", ConnectTimeout: patience}
	require.NoError(t, client.Set(t.Context(), c.key(3), []byte("127.0.0.1:1\nhost")))
	_, err := Join(t.Context(), c)
	require.ErrorContains(t, err, "rank 1: ranks 0, 2, 4 did not join within")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	c = Config{Rank: 0, Size: 3, Store: client, Namespace: "job2", ConnectTimeout: patience}
	for rank := range 3 {
		require.NoError(t, client.Set(t.Context(), c.key(rank), []byte("127.0.0.1:1\nhost")))
	}
	_, err = Join(t.Context(), c)
	require.ErrorContains(t, err, "rank 0: ranks 1, 2 did not connect within")

	c.Rank, c.Namespace = 2, "job3"
	for rank := range 3 {
		require.NoError(t, client.Set(t.Context(), c.key(rank), []byte("127.0.0.1:1\nhost")))
	}
	_, err = Join(t.Context(), c)
	require.ErrorContains(t, err, "at 127.0.0.1:1 not reachable within")
	require.ErrorContains(t, err, "connection refused")
}

func TestJoinRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"token", func(c *Config) { c.Token = "guess" }, "tokens differ"},
		{"size", func(c *Config) { c.Size = 2 }, "this world has 3 ranks, not 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := held(t)
			var refused sync.Map
			wait := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer close(wait)
				_, err := Join(ctx, Config{Rank: 0, Size: 3, Store: client, Namespace: "job", Token: "secret",
					Refused: func(_ net.Addr, err error) { refused.Store(err.Error(), true) }})
				refused.Store("end: "+err.Error(), true)
			}()
			require.NoError(t, client.Set(t.Context(), "job/tcp/2", []byte("127.0.0.1:1\nx")))
			other := Config{Rank: 1, Size: 3, Store: client, Namespace: "job", Token: "secret"}
			c.change(&other)
			_, err := Join(t.Context(), other)
			require.ErrorContains(t, err, "turned it away")
			require.ErrorContains(t, err, c.says)
			cancel()
			<-wait
			n := 0
			refused.Range(func(key, _ any) bool { n++; return true })
			require.Equal(t, 2, n)
		})
	}
}

// TestStrangersAtThePort: garbage and silence while a world forms.
func TestStrangersAtThePort(t *testing.T) {
	client := held(t)
	refusals := make(chan error, 10)
	joined := make(chan *Transport, 2)
	join := func(rank int) {
		r, err := Join(t.Context(), Config{Rank: rank, Size: 2, Store: client, Namespace: "job", Token: "secret",
			Refused: func(_ net.Addr, err error) { refusals <- err }})
		if err != nil {
			t.Error(err)
		}
		joined <- r
	}
	go join(0)
	value, err := client.Get(t.Context(), "job/tcp/0")
	require.NoError(t, err)
	address := string(value[:len(value)-len("\n"+hostIdentity())])
	silent, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer silent.Close()
	loud, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = loud.Write([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, loud)
	require.NoError(t, loud.Close())
	require.ErrorContains(t, <-refusals, "does not speak this protocol")
	go join(1)
	a, b := <-joined, <-joined
	require.NotNil(t, a)
	require.NotNil(t, b)
	closeAll(t, []*Transport{a, b})
	require.Error(t, <-refusals) // the silent one, cut off when the world was whole
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
	}{
		{"IPv6", func(c *Config) { c.ListenAddr = "::1" }},
		{"IPv6 with port", func(c *Config) { c.ListenAddr = "[::1]:0" }},
		{"any", func(c *Config) { c.ListenAddr = "0.0.0.0" }},
		{"interface", func(c *Config) { c.Interface = "lo" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranks, err := join(t, 3, c.change)
			require.NoError(t, err)
			require.NoError(t, ranks[2].Send(t.Context(), 1, 1, []byte("x")))
			require.NoError(t, ranks[1].Recv(t.Context(), 2, 1, make([]byte, 1)))
			closeAll(t, ranks)
		})
	}
	_, err := Join(t.Context(), Config{Rank: 1, Size: 2, Store: held(t), Interface: "nosuch0"})
	require.ErrorContains(t, err, "network interface nosuch0")
	require.ErrorContains(t, err, "lo")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = Join(t.Context(), Config{Rank: 1, Size: 2, Store: held(t), ListenAddr: taken.Addr().String()})
	require.ErrorContains(t, err, taken.Addr().String()+" is in use")
}

func TestHosts(t *testing.T) {
	ranks, err := join(t, 5, func(c *Config) { c.Host = []string{"b", "a", "b", "c", "a"}[c.Rank] })
	require.NoError(t, err)
	for _, r := range ranks {
		require.Equal(t, [][]int{{0, 2}, {1, 4}, {3}}, r.Hosts())
	}
	closeAll(t, ranks)
	require.NotEmpty(t, hostIdentity())
}

// TestManyStrangers: more silent connections than there is place for, and more
// of them all the time, do not hold up those who belong here.
func TestManyStrangers(t *testing.T) {
	client := held(t)
	joined := make(chan *Transport, 2)
	join := func(rank int) {
		r, err := Join(t.Context(), Config{Rank: rank, Size: 2, Store: client, Namespace: "job", Token: "secret", ConnectTimeout: greetingTime / 2})
		if err != nil {
			t.Error(err)
		}
		joined <- r
	}
	go join(0)
	value, err := client.Get(t.Context(), "job/tcp/0")
	require.NoError(t, err)
	address := string(value[:len(value)-len("\n"+hostIdentity())])
	var strangers []net.Conn
	for range maxStrangers + 50 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		strangers = append(strangers, conn)
	}
	// The first are put out for the last.
	_, err = strangers[0].Read(make([]byte, 1))
	require.Error(t, err)
	go join(1)
	closeAll(t, []*Transport{<-joined, <-joined})
	for _, conn := range strangers {
		require.NoError(t, conn.Close())
	}
}

// TestSlowStranger: somebody who sends his greeting byte by byte is cut off
// before he is through, and reads on nothing.
func TestSlowStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		start := time.Now()
		var slow sync.WaitGroup
		slow.Go(func() {
			for _, b := range []byte(purpose + "0123456789abcdef") {
				<-time.After(time.Second) // of the bubble's clock
				if _, err := far.Write([]byte{b}); err != nil {
					return
				}
			}
		})
		err := greet(t.Context(), near, func() error {
			_, err := Config{Size: 2}.filled().welcome(near)
			return err
		})
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, greetingTime, time.Since(start))
		require.NoError(t, near.Close())
		slow.Wait()
		require.NoError(t, far.Close())
	})
}
