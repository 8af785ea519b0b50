//go:build linux && (amd64 || arm64)

package shm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
)

// victimRole reduces until that fails, and tells how.
func victimRole(ctx context.Context, g *collective.Group, _ *Transport, _ *bufio.Reader) error {
	shared, err := g.Alloc(ctx, device.F32, 1<<20)
	if err != nil {
		return err
	}
	private := device.FromF32(make([]float32, 200_000))
	fmt.Println("ready")
	for err == nil {
		err = errors.Join(collective.AllReduce(ctx, g, collective.Max, shared), collective.AllReduce(ctx, g, collective.Max, private))
	}
	fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
	return nil
}

// plainRole waits for one message that never comes.
func plainRole(ctx context.Context, _ *collective.Group, t *Transport, _ *bufio.Reader) error {
	fmt.Println("ready")
	err := t.Recv(ctx, (t.Rank()+1)%t.Size(), 99, make([]byte, 10))
	fmt.Println(err)
	again := t.Send(ctx, (t.Rank()+1)%t.Size(), 99, make([]byte, 10))
	fmt.Println(again)
	return nil
}

func ready(t *testing.T, children []*child) {
	t.Helper()
	for _, c := range children {
		require.Equal(t, "ready", c.line(t))
	}
}

// TestKilledProcess: kill -9 in the middle of calls; every survivor learns of it
// by the death itself and names the rank, and the memory goes with the processes.
func TestKilledProcess(t *testing.T) {
	for _, victim := range []int{0, 2} {
		children := start(t, "victim", 3)
		ready(t, children)
		held := memories(strconv.Itoa(children[victim].Process.Pid))
		require.NotEmpty(t, held)
		require.NoError(t, children[victim].Process.Kill())
		for rank, c := range children {
			if rank == victim {
				continue
			}
			line := c.line(t)
			require.Contains(t, line, fmt.Sprintf("peer %d", victim))
			if !strings.Contains(line, "its process has died") { // another survivor was faster
				require.Contains(t, line, fmt.Sprintf("having lost rank %d", victim))
			}
			require.NotContains(t, line, "not done within")
		}
		for _, c := range children {
			_ = c.in.Close()
			_ = c.Wait()
		}
		requireNoHolder(t, held)
	}
}

// memories are the inodes of the shared memory that a process maps, none for one
// that is gone. Inodes, and not the system's total, because other programs have
// shared memory too.
func memories(pid string) (inodes []string) {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); strings.Contains(line, "/memfd:gradfusion") {
			inodes = append(inodes, fields[4])
		}
	}
	return inodes
}

// requireNoHolder finds a process that still maps one of the inodes.
func requireNoHolder(t *testing.T, inodes []string) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, p := range processes {
		for _, inode := range memories(p.Name()) {
			require.NotContains(t, inodes, inode, "process %s holds the memory of a world that has ended", p.Name())
		}
	}
}

// TestKilledProcessFailsMessages: pending and later messages of everybody.
func TestKilledProcessFailsMessages(t *testing.T) {
	children := start(t, "plain", 3)
	ready(t, children)
	require.NoError(t, children[1].Process.Kill())
	for _, rank := range []int{0, 2} {
		// Of the death itself, or of the other survivor, which was faster.
		want := fmt.Sprintf("^rank %d lost rank (1: its process has died|%d: rank %d has left, having lost rank 1)$", rank, 2-rank, 2-rank)
		require.Regexp(t, want, children[rank].line(t))
		require.Regexp(t, want, children[rank].line(t))
	}
}

// TestStoppedProcess: the group's time-out names the rank that does nothing.
func TestStoppedProcess(t *testing.T) {
	children := start(t, "hasty", 3)
	ready(t, children)
	require.NoError(t, children[1].Process.Signal(syscall.SIGSTOP))
	for _, rank := range []int{0, 2} {
		line := children[rank].line(t)
		require.Contains(t, line, "peer 1")
		require.Contains(t, line, hastyTimeout.String())
	}
	require.NoError(t, children[1].Process.Signal(syscall.SIGCONT))
	// The thawed rank hears of it, or finds its own clock run out first.
	require.Regexp(t, "reports|not done within|waited .* for it", children[1].line(t))
}

// TestStrangers: what does not know the token is turned away, and the world
// comes together all the same.
func TestStrangers(t *testing.T) {
	server, err := store.Listen(context.Background(), "127.0.0.1:0", "secret")
	require.NoError(t, err)
	defer server.Close()
	refused := make(chan error, 10)
	results := make(chan *Transport, 2)
	rank := func(r int) *store.Client {
		client, err := store.Dial(t.Context(), server.Addr().String(), "secret")
		require.NoError(t, err)
		go func() {
			tr, err := Join(t.Context(), Config{Rank: r, Size: 2, Store: client, Namespace: "test", Token: "secret", Refused: func(err error) { refused <- err }})
			if err != nil {
				t.Error(err)
			}
			results <- tr
		}()
		return client
	}
	client := rank(0)
	defer client.Close()
	names, err := client.Wait(t.Context(), Config{Namespace: "test"}.key("socket"))
	require.NoError(t, err)
	var strangers []net.Conn
	for _, words := range []string{"", "GET / HTTP/1.1\r\nHost: here\r\n\r\n", purpose, purpose + strings.Repeat("x", 200)} {
		conn, err := net.Dial("unix", string(names[0]))
		require.NoError(t, err)
		_, err = conn.Write([]byte(words))
		require.NoError(t, err)
		strangers = append(strangers, conn)
	}
	told := (<-refused).Error() + (<-refused).Error()
	require.Contains(t, told, "does not speak this protocol")
	require.Contains(t, told, "the job tokens differ")
	other := rank(1)
	defer other.Close()
	var ranks []*Transport
	for range 2 {
		if tr := <-results; tr != nil {
			ranks = append(ranks, tr)
		}
	}
	for _, conn := range strangers { // the silent ones too: nothing waits for them
		_, _ = conn.Read(make([]byte, 1000))
		require.NoError(t, conn.Close())
	}
	closeAllRanks(t, ranks)
}

func TestWrongToken(t *testing.T) {
	ranks, err := join(t, 2, func(c *Config) {
		c.Refused = nil
		if c.Rank == 1 {
			c.Token = "guess"
		}
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "token")
	require.Equal(t, []*Transport{nil, nil}, ranks)
}

// TestOtherHost: where the socket cannot be reached all ranks are told so.
func TestOtherHost(t *testing.T) {
	ranks, err := join(t, 3, func(c *Config) { c.Store = elsewhere{c.Store, c.Rank == 2} })
	require.Equal(t, []*Transport{nil, nil, nil}, ranks)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "rank 2")
	require.ErrorContains(t, err, "rank 0 is not on this host")
}

// elsewhere leads a rank to a socket that nobody serves.
type elsewhere struct {
	Store
	lost bool
}

func (s elsewhere) Wait(ctx context.Context, keys ...string) ([][]byte, error) {
	values, err := s.Store.Wait(ctx, keys...)
	if err == nil && s.lost && len(keys) == 1 {
		values[0] = []byte("@gradfusion-nobody")
	}
	return values, err
}

func TestBadConfig(t *testing.T) {
	for _, c := range []Config{{}, {Rank: 2, Size: 2}, {Rank: -1, Size: 2}, {Size: 2}, {Size: 1, Namespace: strings.Repeat("x", 300)}} {
		_, err := Join(t.Context(), c)
		require.Error(t, err)
	}
	_, err := Join(t.Context(), Config{Size: 1000, Store: elsewhere{}})
	require.ErrorIs(t, err, ErrUnavailable)
}

// TestMissingRank: Join ends with its time and says who is missing.
func TestMissingRank(t *testing.T) {
	server, err := store.Listen(context.Background(), "127.0.0.1:0", "secret")
	require.NoError(t, err)
	defer server.Close()
	client, err := store.Dial(t.Context(), server.Addr().String(), "secret")
	require.NoError(t, err)
	defer client.Close()
	_, err = Join(t.Context(), Config{Size: 2, Store: client, Namespace: "test", Token: "secret", ConnectTimeout: hastyTimeout})
	require.ErrorContains(t, err, "connect/1")
	require.NotErrorIs(t, err, ErrUnavailable)
}
