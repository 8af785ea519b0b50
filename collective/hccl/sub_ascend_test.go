//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

const table = `{"status":"completed","version":"1.0","server_count":"1","server_list":[{"server_id":"node_0","device":[
	{"device_id":"0","device_ip":"192.168.1.8","rank_id":"0"},{"device_id":%s,"device_ip":"192.168.1.9","rank_id":"1"}]}]}`

// TestRankTable is trap 7: scalars are strings.
func TestRankTable(t *testing.T) {
	for _, device := range []string{`"1"`, `1`} {
		t.Run(device, func(t *testing.T) { testRankTable(t, device) })
	}
}

func testRankTable(t *testing.T, device string) {
	file := filepath.Join(t.TempDir(), "table.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, table, device), 0o600))
	w, err := try(t, 2, func(c *hccl.Config) { c.RankTable = file; c.Namespace = file })
	if device == "1" {
		require.ErrorContains(t, err, "EI0017")
		for i := range w.comms {
			w.comms[i] = nil
		}
		return
	}
	require.NoError(t, err)
	for _, err := range w.each(sums) {
		require.NoError(t, err)
	}
	before := alive(w.library, "splits")
	testSubs(t, w)
	require.Equal(t, before+3, alive(w.library, "splits"), "two ranks of the first Sub and one of the second")
}

// testSubs makes a Sub of two ranks, one of one rank, and a Sub of a Sub, which
// HCCL does not cut from anything.
func testSubs(t *testing.T, w *world) {
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		sub, err := c.Sub(ctx, []int{1, 0})
		if err != nil {
			return err
		}
		if sub.Rank() != 1-c.Rank() {
			return fmt.Errorf("rank %d is %d", c.Rank(), sub.Rank())
		}
		alone, err := c.Sub(ctx, []int{1})
		if err != nil || (alone != nil) != (c.Rank() == 1) {
			return fmt.Errorf("%v, %w", alone, err)
		}
		deeper, err := sub.Sub(ctx, []int{0, 1})
		if err != nil {
			return err
		}
		errs := []error{sums(ctx, sub), sums(ctx, deeper), deeper.Close(), sub.Close()}
		if alone != nil {
			errs = append(errs, sums(ctx, alone), alone.Close())
		}
		return errors.Join(errs...)
	}) {
		require.NoError(t, err)
	}
}

// TestSubsWithoutSplitting: libraries that do not cut communicators, or refuse to.
func TestSubsWithoutSplitting(t *testing.T) {
	libraries, err := ascendsim.Build(t.TempDir(), ascendsim.Old, "")
	require.NoError(t, err)
	for _, tt := range []struct{ libraries, env string }{{libraries, "ASCENDSIM_OLD=1"}, {"", "ASCENDSIM_NO_SUBS=1"}} {
		out, err := ascendsim.Again(t, tt.libraries, "^TestSubsByRootInfo$", "ASCEND_TEST_FAULTS=1", tt.env)
		require.NoError(t, err, "%s", out)
	}
}

// TestSubsByRootInfo runs in TestSubsWithoutSplitting.
func TestSubsByRootInfo(t *testing.T) {
	if !inFault(t) {
		return
	}
	file := filepath.Join(t.TempDir(), "table.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, table, `"1"`), 0o600))
	w := start(t, 2, func(c *hccl.Config) { c.RankTable = file })
	testSubs(t, w)
	require.Zero(t, alive(w.library, "splits"))
}
