package mixed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		machines []int
		want     [][]int
	}{
		{[]int{0}, [][]int{{0}}},
		{[]int{0, 0, 0}, [][]int{{0, 1, 2}}},
		{[]int{0, 1, 0, 1}, [][]int{{0, 2}, {1, 3}}},
		{[]int{2, 1, 0, 1, 2}, [][]int{{0, 4}, {1, 3}, {2}}},
	} {
		err := meet(t, len(tt.machines), func(rank int) int { return tt.machines[rank] }, func(ctx context.Context, rank int, c Config) error {
			hosts, err := Hosts(ctx, c)
			if err == nil && fmt.Sprint(hosts) != fmt.Sprint(tt.want) {
				err = fmt.Errorf("rank %d found %v, not %v", rank, hosts, tt.want)
			}
			return err
		})
		require.NoError(t, err)
	}
}

func TestBadHosts(t *testing.T) {
	for _, hosts := range [][][]int{{{0, 1}}, {{0, 1}, {1, 2}}, {{0, 1, 3}}, nil} {
		_, err := newTransport(0, 3, hosts)
		require.Error(t, err, "%v", hosts)
	}
	for _, leaders := range [][]string{{"1", "1"}, {"x"}, {"0", "0", "1"}, {"-1"}} {
		_, err := byLeader(leaders)
		require.Error(t, err, "%v", leaders)
	}
}

// each runs f on every rank's Group at once and closes everything.
func each(t *testing.T, ranks []collective.Transport, timeout time.Duration, f func(ctx context.Context, g *collective.Group) error) {
	t.Helper()
	var all errgroup.Group
	for _, tr := range ranks {
		all.Go(func() error {
			g := collective.NewGroup(tr, collective.GroupConfig{Timeout: timeout})
			err := f(t.Context(), g)
			return errors.Join(err, g.Close(), tr.Close())
		})
	}
	require.NoError(t, all.Wait())
}

// TestGroupsInsideAHost: they have buckets in shared memory, which groups over
// several hosts have not, and are right in both.
func TestGroupsInsideAHost(t *testing.T) {
	each(t, world(t, 4, func(rank int) int { return rank / 2 }), 0, func(ctx context.Context, g *collective.Group) error {
		if g.SharesMemory() {
			return errors.New("ranks of two hosts share memory")
		}
		first := g.Rank() / 2 * 2
		for _, ranks := range [][]int{{0, 1}, {2, 3}, {1, 2}} {
			sub, err := g.Sub(ctx, ranks)
			if err != nil {
				return err
			}
			if sub == nil {
				continue
			}
			inside := ranks[0] == first && ranks[1] == first+1
			if got := sub.(*collective.Group).SharesMemory(); got != inside {
				return fmt.Errorf("ranks %v share memory: %v", ranks, got)
			}
			b, err := sub.Alloc(ctx, device.F32, 100_000)
			if err != nil {
				return err
			}
			for i := range b.F32() {
				b.F32()[i] = float32(i + g.Rank())
			}
			call := collective.Call{Kind: plan.AllReduce, In: b}
			if got := sub.(*collective.Group).AlgorithmOf(call); inside && got != "direct" {
				return fmt.Errorf("ranks %v sum by %s", ranks, got)
			}
			if err := sub.Start(ctx, call).Wait(ctx); err != nil {
				return err
			}
			for i, x := range b.F32() {
				if want := float32(2*i + ranks[0] + ranks[1]); x != want {
					return fmt.Errorf("ranks %v: element %d is %v, not %v", ranks, i, x, want)
				}
			}
			if err := errors.Join(collective.Barrier(ctx, sub), sub.Close()); err != nil {
				return err
			}
		}
		return collective.Barrier(ctx, g)
	})
}

// TestDeparture: a rank that leaves because it has lost another says so to both
// sides, by the numbers of the whole world.
func TestDeparture(t *testing.T) {
	ranks := world(t, 4, func(rank int) int { return rank % 2 })
	leaver := ranks[3].(*Transport)
	lost := &collective.LinkError{Rank: 3, Peer: 2, Err: errors.New("gone")}
	require.True(t, leaver.inside.Fail(lost))
	leaver.across.Fail(lost)
	require.NoError(t, leaver.Close())
	for _, rank := range []int{0, 1} { // across, inside
		err := ranks[rank].Recv(t.Context(), 3, 7, make([]byte, 3))
		var link *collective.LinkError
		require.ErrorAs(t, err, &link)
		require.Equal(t, [2]int{rank, 3}, [2]int{link.Rank, link.Peer})
		var departed *collective.DepartedError
		require.ErrorAs(t, err, &departed)
		require.Equal(t, collective.DepartedError{Rank: 3, Lost: 2}, *departed)
	}
	for _, tr := range ranks[:3] {
		require.NoError(t, tr.Close())
	}
}
