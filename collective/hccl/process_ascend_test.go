//go:build ascend

package hccl_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// TestProcesses: each rank is a process of its own, with and without a dying one.
func TestProcesses(t *testing.T) {
	outputs, errs := processes(t, 3)
	for r, err := range errs {
		require.NoError(t, err, "%s", outputs[r])
	}
}

func TestKilledProcess(t *testing.T) {
	outputs, errs := processes(t, 3, "ASCENDSIM_FAULTS=rank=1 kind=kill after=3")
	for r, err := range errs {
		require.Error(t, err)
		if r != 1 {
			require.Contains(t, outputs[r], "the sums failed")
		}
	}
}

// processes runs ranks as processes and returns what they wrote and how they
// ended.
func processes(t *testing.T, n int, env ...string) (outputs []string, errs []error) {
	server, err := store.Listen(t.Context(), "127.0.0.1:0", "token")
	require.NoError(t, err)
	defer server.Close()
	buffers, all := make([]bytes.Buffer, n), make([]*exec.Cmd, n)
	for r := range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRankProcess$", "-test.count=1")
		cmd.Env = append(append(os.Environ(), "ASCEND_TEST_RANK="+strconv.Itoa(r), "ASCEND_TEST_SIZE="+strconv.Itoa(n),
			"ASCEND_TEST_STORE="+server.Addr().String()), env...)
		cmd.Stdout, cmd.Stderr = &buffers[r], &buffers[r]
		require.NoError(t, cmd.Start())
		all[r] = cmd
	}
	for r, cmd := range all {
		errs = append(errs, cmd.Wait())
		outputs = append(outputs, buffers[r].String())
	}
	return outputs, errs
}

// TestRankProcess is one rank of processes.
func TestRankProcess(t *testing.T) {
	rank, err := strconv.Atoi(os.Getenv("ASCEND_TEST_RANK"))
	if err != nil {
		return
	}
	size, err := strconv.Atoi(os.Getenv("ASCEND_TEST_SIZE"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := store.Dial(ctx, os.Getenv("ASCEND_TEST_STORE"), "token")
	require.NoError(t, err)
	defer client.Close()
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err)
	d, err := l.Open(rank)
	require.NoError(t, err)
	c, err := hccl.New(ctx, hccl.Config{Rank: rank, Size: size, Device: d, Store: client, Namespace: "processes", Timeout: patience})
	require.NoError(t, err)
	failed := sums(ctx, c)
	if failed == nil {
		failed = collective.Barrier(ctx, c)
	}
	require.NoError(t, c.Close())
	require.NoError(t, d.Close())
	require.Zero(t, alive(l, "communicators"))
	require.NoError(t, l.Close())
	if failed != nil {
		fmt.Println("the sums failed:", failed)
	}
	require.NoError(t, failed)
}
