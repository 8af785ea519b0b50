package tcp

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterfaceGrammar(t *testing.T) {
	for _, c := range []struct {
		pattern, matches, not string
	}{
		{"eth", "eth0", "docker0"},
		{"eth", "eth", "net"},
		{"eth,ib", "ib0", "docker0"},
		{"=eth0", "eth0", "eth01"},
		{"=eth0,eth1", "eth1", "eth10"},
		{"^docker", "eth0", "docker0"},
		{"^docker,lo", "eth0", "lo"},
		{"^=lo", "lo0", "lo"},
		{"^=eth0, eth1", "eth", "eth1"},
	} {
		p, err := parsePattern(c.pattern)
		require.NoError(t, err)
		require.True(t, p.matches(c.matches), "%s %s", c.pattern, c.matches)
		require.False(t, p.matches(c.not), "%s %s", c.pattern, c.not)
	}
	for _, bad := range []string{"^", "=", "^=", "eth,,ib", ",", "eth,^docker", "=^eth", "==eth0"} {
		_, err := parsePattern(bad)
		require.ErrorContains(t, err, "at most one ^", bad)
	}
	_, err := chooseInterface("lo")
	require.NoError(t, err)
}

func FuzzInterfaceGrammar(f *testing.F) {
	for _, s := range []string{"eth", "=eth0", "^docker", "^=lo", "a,b"} {
		f.Add(s, "eth0")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if p, err := parsePattern(text); err == nil {
			opposite := p
			opposite.not = !p.not
			require.NotEqual(t, p.matches(name), opposite.matches(name))
		}
	})
}

// TestNoPort: a rank that finds no port says so to all, at once.
func TestNoPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	errs := make([]error, 3)
	synced := held(t)
	var all sync.WaitGroup
	for rank := range errs {
		all.Go(func() {
			c := Config{Rank: rank, Size: 3, Store: synced, ConnectTimeout: time.Hour}
			if rank == 1 {
				c.Ports = PortRange{port, port}
			}
			_, errs[rank] = Join(t.Context(), c)
		})
	}
	all.Wait()
	says := fmt.Sprintf("tcp: rank 1: all of the ports %d of 127.0.0.1 are taken", port)
	require.ErrorContains(t, errs[1], says)
	for _, rank := range []int{0, 2} {
		require.ErrorContains(t, errs[rank], fmt.Sprintf("tcp: rank %d: rank 1 cannot join: %s", rank, says))
	}
}

// TestPorts: ranks share a range, and a full one is named.
func TestPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, text, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	_, err = Join(t.Context(), Config{Rank: 1, Size: 2, Store: held(t), Ports: PortRange{port, port}})
	require.ErrorContains(t, err, "rank 1: all of the ports "+text+" of 127.0.0.1 are taken")

	first := min(port, 65000) + 1
	ports := PortRange{first, first + 300} // others may hold some
	ranks, err := join(t, 3, func(c *Config) { c.Ports, c.Retry = ports, 1 })
	require.NoError(t, err)
	for _, r := range ranks {
		at := r.door.listener.Addr().(*net.TCPAddr).Port
		require.True(t, ports.First <= at && at <= ports.Last)
	}
	closeAll(t, ranks)
	for _, bad := range []PortRange{{5, 4}, {1, 70000}, {-1, 5}} {
		_, err = Join(t.Context(), Config{Size: 2, Store: held(t), Ports: bad})
		require.ErrorContains(t, err, "ports")
	}
}
