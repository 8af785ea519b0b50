package collective_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// TestRelayedParts gathers and scatters along a binomial tree, in which parts
// pass through a rank that is neither their owner nor the root.
func TestRelayedParts(t *testing.T) {
	up := plan.Of(4, 4,
		plan.Round{{From: 1, To: 0, Src: 1, Dst: 1, N: 1}, {From: 3, To: 2, Src: 3, Dst: 3, N: 1}},
		plan.Round{{From: 2, To: 0, Src: 2, Dst: 2, N: 2}})
	down := plan.Of(4, 4,
		plan.Round{{From: 0, To: 2, Src: 2, Dst: 2, N: 2}},
		plan.Round{{From: 0, To: 1, Src: 1, Dst: 1, N: 1}, {From: 2, To: 3, Src: 3, Dst: 3, N: 1}})
	require.NoError(t, up.Check(plan.Gather, 0))
	require.NoError(t, down.Check(plan.Scatter, 0))
	for _, part := range []int{3, 100_000} {
		for _, bounds := range [][]int{nil, {0, part, 2*part + 1, 3 * part, 4 * part}} {
			whole := make([]int32, 4*part)
			for i := range whole {
				whole[i] = int32(i)
			}
			onRanks(t, 4, plainConfig, func(ctx context.Context, g *collective.Group) error {
				cuts := bounds
				if cuts == nil {
					cuts = plan.Cut(len(whole), 4)
				}
				own := whole[cuts[g.Rank()]:cuts[g.Rank()+1]]
				got := make([]int32, len(own))
				gather := collective.Call{Kind: plan.Gather, InBounds: bounds, In: device.FromI32(slices.Clone(own))}
				scatter := collective.Call{Kind: plan.Scatter, InBounds: bounds, Out: device.FromI32(got)}
				all := make([]int32, len(whole))
				if g.Rank() == 0 {
					gather.Out, scatter.In = device.FromI32(all), device.FromI32(slices.Clone(whole))
				}
				for _, c := range []struct {
					call collective.Call
					plan plan.Plan
				}{{gather, up}, {scatter, down}} {
					if err := g.UsePlan(c.call, c.plan); err != nil {
						return err
					}
					if err := g.Start(ctx, c.call).Wait(ctx); err != nil {
						return err
					}
				}
				switch {
				case g.Rank() == 0 && !slices.Equal(all, whole):
					return fmt.Errorf("gathered %v", all[:8])
				case !slices.Equal(got, own):
					return fmt.Errorf("rank %d was given another part", g.Rank())
				}
				return nil
			})
		}
	}
}

// TestAllToAllThroughScratch: chunks beyond what is sent and received are a
// plan's own; here everything goes through them.
func TestAllToAllThroughScratch(t *testing.T) {
	const n = 3
	var out, across, in plan.Round
	for r := range n {
		out = append(out, plan.Move{From: r, To: r, Dst: 2 * n, N: n})
		in = append(in, plan.Move{From: r, To: r, Src: 3 * n, Dst: n, N: n})
		for to := range n {
			across = append(across, plan.Move{From: r, To: to, Src: 2*n + to, Dst: 3*n + r, N: 1})
		}
	}
	p := plan.Of(n, 4*n, out, across, in)
	require.NoError(t, p.Check(plan.AllToAll, 0))
	for _, inPlace := range []bool{false, true} {
		onRanks(t, n, plainConfig, func(ctx context.Context, g *collective.Group) error {
			const part = 20_000
			sent, want := make([]int32, n*part), make([]int32, n*part)
			for i := range sent {
				sent[i], want[i] = int32(g.Rank()*n+i/part), int32(i/part*n+g.Rank())
			}
			c := collective.Call{Kind: plan.AllToAll, In: device.FromI32(sent), Out: device.FromI32(make([]int32, n*part))}
			got := c.Out
			if inPlace {
				c.Out, got = device.Buf{}, c.In
			}
			if err := g.UsePlan(c, p); err != nil {
				return err
			}
			if err := g.Start(ctx, c).Wait(ctx); err != nil {
				return err
			}
			if !slices.Equal(got.I32(), want) {
				return fmt.Errorf("rank %d got %v", g.Rank(), got.I32()[:4])
			}
			return nil
		})
	}
}

// TestInputsAreNotCopied: an input that must stay as it is is read where it lies.
func TestInputsAreNotCopied(t *testing.T) {
	ranks := inproc.New(4)
	g := collective.NewGroup(ranks[0], collective.GroupConfig{})
	defer g.Close()
	f32 := func(n int) device.Buf { return device.FromF32(make([]float32, n)) }
	for _, tt := range []struct {
		call            collective.Call
		scratch, copied int
	}{
		{collective.Call{Kind: plan.ReduceScatter, In: f32(400), Out: f32(100), Algorithm: "pairwise"}, 0, 0},
		{collective.Call{Kind: plan.ReduceScatter, In: f32(400), Out: f32(100), Algorithm: "direct"}, 0, 0},
		{collective.Call{Kind: plan.ReduceScatter, In: f32(400), Out: f32(100), Algorithm: "ring"}, 300, 0},
		{collective.Call{Kind: plan.AllReduce, In: f32(400), Out: f32(400), Algorithm: "ring"}, 0, 0},
		{collective.Call{Kind: plan.AllReduce, In: f32(400), Out: f32(400), Algorithm: "tree"}, 0, 0},
	} {
		scratch, copied, err := g.Memory(tt.call)
		require.NoError(t, err)
		require.Equal(t, [2]int{tt.scratch, tt.copied}, [2]int{scratch, copied}, "%v by %s", tt.call.Kind, tt.call.Algorithm)
	}
}

// TestRandomPlans compares the executor with the simulator on plans that make
// no sense: moves to the rank itself, hazards, several writes to one place.
func TestRandomPlans(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, chunks := 1+rng.IntN(4), 1+rng.IntN(6)
		var rounds []plan.Round
		for range 1 + rng.IntN(5) {
			var round plan.Round
			for range rng.IntN(8) {
				count := 1 + rng.IntN(chunks)
				round = append(round, plan.Move{
					From: rng.IntN(n), To: rng.IntN(n), Src: rng.IntN(chunks - count + 1), Dst: rng.IntN(chunks - count + 1),
					N: count, Reduce: rng.IntN(2) == 0,
				})
			}
			rounds = append(rounds, round)
		}
		p := plan.Of(n, chunks, rounds...)
		length := chunks * []int{1, 3, 20_000}[rng.IntN(3)] // moves of one length on both sides
		got, want := make([][]int32, n), make([][]int32, n)
		for r := range n {
			for range length {
				got[r] = append(got[r], rng.Int32N(1000))
			}
			want[r] = slices.Clone(got[r])
		}
		require.NoError(t, plan.Simulate(p, want, nil, func(dst, src []int32) {
			for i := range dst {
				dst[i] += src[i]
			}
		}))
		onRanks(t, n, plainConfig, func(ctx context.Context, g *collective.Group) error {
			c := collective.Call{Kind: plan.AllReduce, In: device.FromI32(got[g.Rank()])}
			if err := g.UsePlan(c, p); err != nil {
				return err
			}
			return g.Start(ctx, c).Wait(ctx)
		})
		for r := range n {
			require.True(t, slices.Equal(want[r], got[r]), "seed %d, rank %d, plan\n%v", seed, r, p)
		}
	}
}
