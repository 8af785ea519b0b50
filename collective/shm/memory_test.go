//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// TestSubGroupsShareMemory: groups of some ranks have buckets of their own, and
// more groups than the table holds can follow each other.
func TestSubGroupsShareMemory(t *testing.T) {
	groups(t, 3, func(ctx context.Context, g *collective.Group, tr *Transport) error {
		for round := range domainsMax + 10 {
			members := [][]int{{0, 2}, {2, 1}, {1, 0, 2}}[round%3]
			sub, err := g.Sub(ctx, members)
			if err != nil {
				return err
			}
			if sub == nil {
				continue
			}
			b, err := sub.Alloc(ctx, device.I64, 10_000)
			if err != nil {
				return err
			}
			if tr.placeOf(b) == 0 {
				return errors.New("a bucket of a sub-group is not shared")
			}
			b.I64()[9_999] = int64(members[sub.Rank()])
			if err := collective.AllReduce(ctx, sub, collective.Sum, b); err != nil {
				return err
			}
			if want := int64(members[0] + members[1] + 3*(len(members)-2) - (len(members)-2)*1); b.I64()[9_999] != want {
				return fmt.Errorf("round %d: %v summed to %d", round, members, b.I64()[9_999])
			}
			if err := collective.Barrier(ctx, sub); err != nil {
				return err
			}
			if err := sub.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestRegister finds the peers' parts of memory that Alloc gave.
func TestRegister(t *testing.T) {
	groups(t, 2, func(ctx context.Context, g *collective.Group, tr *Transport) error {
		b, err := g.Alloc(ctx, device.F32, 5000)
		if err != nil {
			return err
		}
		for _, x := range b.F32() {
			if x != 0 {
				return errors.New("not zeroed")
			}
		}
		b.F32()[4000] = float32(g.Rank() + 1)
		if err := collective.Barrier(ctx, g); err != nil {
			return err
		}
		peers, err := tr.Register(ctx, b.Slice(3000, 5000))
		if err != nil || len(peers) != 2 || peers[0].F32()[1000] != 1 || peers[1].F32()[1000] != 2 {
			return fmt.Errorf("peers are %v, %w", len(peers), err)
		}
		if peers, err := tr.Register(ctx, device.FromF32(make([]float32, 10))); err != nil || peers != nil {
			return errors.New("private memory has peers")
		}
		return collective.Barrier(ctx, g)
	})
}

// TestAllocOfDifferentSizes tells both.
func TestAllocOfDifferentSizes(t *testing.T) {
	ranks := world(t, 2)
	var all errgroup.Group
	for _, tr := range ranks {
		all.Go(func() error {
			g := collective.NewGroup(tr, collective.GroupConfig{Timeout: testTimeout})
			defer g.Close()
			_, err := g.Alloc(t.Context(), device.F32, 10+tr.Rank())
			if err == nil || !strings.Contains(err.Error(), "allocation of 10 f32") || !strings.Contains(err.Error(), "allocation of 11 f32") {
				return fmt.Errorf("rank %d: %v", tr.Rank(), err)
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	closeAllRanks(t, ranks)
}

// TestNothingIsLeft: descriptors, mappings and shared memory are as before.
func TestNothingIsLeft(t *testing.T) {
	use := func() {
		groups(t, 3, func(ctx context.Context, g *collective.Group, tr *Transport) error {
			b, err := g.Alloc(ctx, device.F32, 1<<20)
			if err != nil {
				return err
			}
			return errors.Join(collective.AllReduce(ctx, g, collective.Sum, b),
				collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, 1<<20))))
		})
	}
	use() // what the runtime keeps for itself
	descriptors, mappings := held(t)
	for range 3 {
		use()
	}
	after, mapped := held(t)
	require.Equal(t, descriptors, after, "descriptors")
	require.Zero(t, mappings+mapped, "mappings of shared memory")
}

func held(t *testing.T) (descriptors, mappings int) {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return len(entries), strings.Count(string(maps), "memfd:gradfusion")
}

// TestSteadyStateAllocatesLittle: a call is a Work and nothing else.
func TestSteadyStateAllocatesLittle(t *testing.T) {
	ranks := world(t, 2)
	var gs [2]*collective.Group
	var buffers [2][2]device.Buf
	var all errgroup.Group
	for r, tr := range ranks {
		gs[r] = collective.NewGroup(tr, collective.GroupConfig{Timeout: testTimeout})
		all.Go(func() (err error) {
			buffers[r][0] = device.FromF32(make([]float32, 300_000))
			buffers[r][1], err = gs[r].Alloc(t.Context(), device.F32, 300_000)
			return err
		})
	}
	require.NoError(t, all.Wait())
	ask, answer := make(chan device.Buf), make(chan error)
	go func() {
		for b := range ask {
			answer <- collective.AllReduce(t.Context(), gs[1], collective.Sum, b)
		}
		close(answer)
	}()
	for memory, name := range []string{"private", "shared"} {
		for _, length := range []int{100, 300_000} {
			count := testing.AllocsPerRun(50, func() {
				ask <- buffers[1][memory].Slice(0, length)
				require.NoError(t, collective.AllReduce(t.Context(), gs[0], collective.Sum, buffers[0][memory].Slice(0, length)))
				require.NoError(t, <-answer)
			})
			require.LessOrEqual(t, count, 2.0, "%s, %d", name, length) // one Work per rank
		}
	}
	close(ask)
	<-answer
	for _, g := range gs {
		require.NoError(t, g.Close())
	}
	closeAllRanks(t, ranks)
}

// TestAllocShared: every rank of a group can write to what the others got.
func TestAllocShared(t *testing.T) {
	groups(t, 3, func(ctx context.Context, g *collective.Group, _ *Transport) error {
		sub, err := g.Sub(ctx, []int{2, 0, 1})
		if err != nil {
			return err
		}
		for _, n := range []int{0, 1, 1000, 1 << 20} {
			own, ranks, err := sub.(*collective.Group).AllocShared(ctx, device.I32, n)
			if err != nil {
				return err
			}
			if len(ranks) != 3 || own.Len != n || ranks[sub.Rank()].Len != n {
				return fmt.Errorf("%d parts, the own one of %d elements, not %d", len(ranks), own.Len, n)
			}
			if n < 3 {
				continue
			}
			for _, b := range ranks {
				b.I32()[n-1-sub.Rank()] = int32(n + sub.Rank())
			}
			if err := collective.Barrier(ctx, sub); err != nil {
				return err
			}
			for r := range 3 {
				if got := own.I32()[n-1-r]; got != int32(n+r) {
					return fmt.Errorf("rank %d wrote %d", r, got)
				}
			}
		}
		return sub.Close()
	})
}
