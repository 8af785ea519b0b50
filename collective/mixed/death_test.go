package mixed

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/device"
)

// The test of real processes runs the test program again as its ranks; the
// variable says which: rank, size, store's address.
const rankVariable = "MIXED_TEST_RANK"

func TestMain(m *testing.M) {
	if place := os.Getenv(rankVariable); place != "" {
		if err := runRank(place); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runRank reduces until that fails, and tells how.
func runRank(place string) error {
	var rank, size int
	var address string
	if _, err := fmt.Sscan(place, &rank, &size, &address); err != nil {
		return err
	}
	ctx := context.Background()
	client, err := store.Dial(ctx, address, "secret")
	if err != nil {
		return err
	}
	defer client.Close()
	c := Config{Machine: fmt.Sprint(rank % 2), TCP: tcp.Config{Rank: rank, Size: size, Store: client, Namespace: "test", Token: "secret"}}
	hosts, err := Hosts(ctx, c)
	if err != nil {
		return err
	}
	t, err := Join(ctx, c, hosts)
	if err != nil {
		return err
	}
	defer t.Close()
	g := collective.NewGroup(t, collective.GroupConfig{Timeout: 20 * time.Second, Algorithm: "hierarchical"})
	defer g.Close()
	fmt.Println("ready")
	for err == nil {
		err = collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, 200_000)))
	}
	fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
	return nil
}

// TestKilledProcess: kill -9 in the middle of calls; every survivor, on the
// victim's host or not, learns of it by the death itself and names the rank.
func TestKilledProcess(t *testing.T) {
	const size, victim = 4, 1 // which shares a host with 3
	server, err := store.Listen(t.Context(), "127.0.0.1:0", "secret")
	require.NoError(t, err)
	defer server.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	var ranks [size]*exec.Cmd
	var lines [size]*bufio.Scanner
	for rank := range ranks {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", rankVariable, rank, size, server.Addr()))
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		ranks[rank], lines[rank] = c, bufio.NewScanner(out)
	}
	for rank := range ranks {
		require.True(t, lines[rank].Scan())
		require.Equal(t, "ready", lines[rank].Text())
	}
	require.NoError(t, ranks[victim].Process.Kill())
	for rank := range ranks {
		if rank != victim {
			require.True(t, lines[rank].Scan())
			require.Regexp(t, fmt.Sprintf(`peer %d: |having lost rank %d`, victim, victim), lines[rank].Text(), "rank %d", rank)
			require.NotContains(t, lines[rank].Text(), "not done within")
		}
		_ = ranks[rank].Wait() // the victim's status is no news
	}
}
