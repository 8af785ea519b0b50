//go:build linux && (amd64 || arm64)

package shm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/store"
)

// The tests and benchmarks of real processes run the test program again as their
// ranks; the variable says what for: role, rank, size, store's address.
const roleVariable = "SHM_TEST_ROLE"

// role is what a rank's process does. It may print for the parent, and reads
// a line whenever it must wait for it.
type role func(ctx context.Context, g *collective.Group, t *Transport, in *bufio.Reader) error

func roles() map[string]role {
	return map[string]role{"bench": benchRole, "victim": victimRole, "hasty": victimRole, "plain": plainRole}
}

// runRole is main of a rank's process.
func runRole(description string) error {
	var name, address string
	var rank, size int
	if _, err := fmt.Sscan(description, &name, &rank, &size, &address); err != nil {
		return err
	}
	ctx := context.Background()
	client, err := store.Dial(ctx, address, "secret")
	if err != nil {
		return err
	}
	t, err := Join(ctx, Config{Rank: rank, Size: size, Store: client, Namespace: "test", Token: "secret"})
	if err != nil {
		return err
	}
	defer client.Close()
	defer t.Close()
	patience := time.Minute // what ends a group is no time-out
	if name == "hasty" {
		patience = hastyTimeout
	}
	g := collective.NewGroup(t, collective.GroupConfig{Timeout: patience})
	defer g.Close()
	return roles()[name](ctx, g, t, bufio.NewReader(os.Stdin))
}

// child is a rank's process.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start runs a world of processes in a role; they end with the test.
func start(tb testing.TB, name string, size int) []*child {
	tb.Helper()
	server, err := store.Listen(context.Background(), "127.0.0.1:0", "secret")
	require.NoError(tb, err)
	self, err := os.Executable()
	require.NoError(tb, err)
	children := make([]*child, size)
	for rank := range children {
		c := exec.Command(self)
		c.Env = append(os.Environ(), roleVariable+"="+strings.Join([]string{name, strconv.Itoa(rank), strconv.Itoa(size), server.Addr().String()}, " "))
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		require.NoError(tb, err)
		out, err := c.StdoutPipe()
		require.NoError(tb, err)
		require.NoError(tb, c.Start())
		children[rank] = &child{c, in, bufio.NewScanner(out)}
	}
	tb.Cleanup(func() {
		for _, c := range children {
			_ = c.in.Close()
		}
		for _, c := range children {
			_ = c.Wait() // a victim's status is no news
		}
		_ = server.Close()
	})
	return children
}

// line returns a child's next line.
func (c *child) line(tb testing.TB) string {
	tb.Helper()
	require.True(tb, c.out.Scan(), "the rank's process said nothing more")
	return c.out.Text()
}
