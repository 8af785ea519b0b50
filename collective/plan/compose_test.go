package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// hierarchical reduces inside hosts, then across, then gathers inside: a
// composition, no algorithm of its own.
func hierarchical(hosts, local int) plan.Plan {
	total, chunks := hosts*local, hosts*local
	var scatter, across, gather []plan.Plan
	for h := range hosts {
		ranks := make([]int, local)
		for i := range ranks {
			ranks[i] = h*local + i
		}
		scatter = append(scatter, plan.OnRanks(plan.Ring(plan.ReduceScatter, local, 0).Refine(hosts), ranks, total))
		gather = append(gather, plan.OnRanks(plan.Ring(plan.AllGather, local, 0).Refine(hosts), ranks, total))
	}
	for i := range local {
		ranks := make([]int, hosts)
		for h := range ranks {
			ranks[h] = h*local + i
		}
		across = append(across, plan.OnRanks(plan.OnChunks(plan.Ring(plan.AllReduce, hosts, 0), i*hosts, chunks), ranks, total))
	}
	return plan.Then(plan.Zip(scatter...), plan.Zip(across...), plan.Zip(gather...))
}

func TestHierarchicalIsAComposition(t *testing.T) {
	for hosts := 1; hosts <= 5; hosts++ {
		for local := 1; local <= 5; local++ {
			p := hierarchical(hosts, local)
			require.NoError(t, p.Check(plan.AllReduce, 0), "%d hosts of %d", hosts, local)
			rounds, _ := p.Count()
			require.Equal(t, 2*(local-1)+2*(hosts-1), rounds)
		}
	}
}

func TestZipRunsTwoTreesSideBySide(t *testing.T) {
	up := plan.Naive(plan.AllReduce, 4, 0)
	p := plan.Zip(plan.OnChunks(up, 0, 2), plan.OnChunks(up.Shift(2), 1, 2))
	require.NoError(t, p.Check(plan.AllReduce, 0))
	rounds, moves := p.Count()
	require.Equal(t, []int{2, 12}, []int{rounds, moves})
	// Plans of unequal length, and a consumer that stops early.
	long := plan.Zip(plan.OnChunks(plan.Ring(plan.AllReduce, 4, 0), 0, 5), plan.OnChunks(up, 4, 5))
	require.NoError(t, long.Check(plan.AllReduce, 0))
	for range long.Rounds {
		break
	}
	for range plan.Then(up, up).Rounds {
		break
	}
}

func TestShiftMovesTheRoot(t *testing.T) {
	for root := range 5 {
		require.NoError(t, plan.Naive(plan.Broadcast, 5, 0).Shift(root).Check(plan.Broadcast, root))
		require.NoError(t, plan.Naive(plan.Reduce, 5, 4).Shift(root-4).Check(plan.Reduce, root))
	}
}

func TestCompositionsThatDoNotFitPanic(t *testing.T) {
	a, b := plan.Ring(plan.AllReduce, 4, 0), plan.Ring(plan.AllReduce, 5, 0)
	for name, f := range map[string]func(){
		"plan: Then of 4 ranks, 4 chunks and 5 ranks, 5 chunks":  func() { plan.Then(a, b) },
		"plan: Zip of 4 ranks, 4 chunks and 5 ranks, 5 chunks":   func() { plan.Zip(a, b) },
		"plan: Zip of no plan":                                   func() { plan.Zip() },
		"plan: OnRanks: 1 ranks given for a plan of 4":           func() { plan.OnRanks(a, []int{1}, 8) },
		"plan: OnRanks: [0 1 1 2] are no distinct ranks below 8": func() { plan.OnRanks(a, []int{0, 1, 1, 2}, 8) },
		"plan: OnChunks: chunks [3:7] of 6":                      func() { plan.OnChunks(a, 3, 6) },
		"plan: Refine by 0":                                      func() { a.Refine(0) },
	} {
		require.PanicsWithValue(t, name, f)
	}
}

func TestSimulate(t *testing.T) {
	add := func(dst, src []int) {
		for i := range dst {
			dst[i] += src[i]
		}
	}
	vectors := [][]int{{1, 2}, {2, 3}, {3, 4}, {4, 5}}
	require.NoError(t, plan.Simulate(plan.Ring(plan.AllReduce, 4, 0), vectors, nil, add))
	for _, v := range vectors {
		require.Equal(t, []int{10, 14}, v)
	}
	// All-to-all with parts of unequal size: rank i sends 10i+j, i+j times, to j.
	const n = 3
	bounds := make([][]int, n)
	vectors = make([][]int, n)
	for r := range n {
		bounds[r] = []int{0}
		for j := range n {
			vectors[r] = append(vectors[r], slices.Repeat([]int{10*r + j}, r+j)...)
			bounds[r] = append(bounds[r], len(vectors[r]))
		}
		for j := range n {
			vectors[r] = append(vectors[r], make([]int, r+j)...)
			bounds[r] = append(bounds[r], len(vectors[r]))
		}
	}
	require.NoError(t, plan.Simulate(plan.Pairwise(plan.AllToAll, n, 0), vectors, bounds, add))
	require.Equal(t, []int{1, 11, 11, 21, 21, 21}, vectors[1][6:])
	bounds[0][4]++
	require.ErrorContains(t, plan.Simulate(plan.Pairwise(plan.AllToAll, n, 0), vectors, bounds, add), "round 0, move")
	require.Error(t, plan.Simulate(plan.Ring(plan.AllReduce, 4, 0), vectors, nil, add))
}

func TestCost(t *testing.T) {
	links := plan.Links{
		Hosts:  [][]int{{0, 1}, {2, 3}},
		Inside: plan.Link{Latency: 1000, PerMessage: 1, BytesPerSecond: 1e12},
		Across: plan.Link{Latency: 1_000_000, PerMessage: 1, BytesPerSecond: 1e9},
		// Free reductions.
		ReduceBytesPerSecond: 1e18,
	}
	// Six rounds, each with a chunk of 1 MB over a link of 1 GB/s: 6 x 2 ms.
	got := plan.Ring(plan.AllReduce, 4, 0).Cost(links, 4_000_000)
	require.InDelta(t, 12e6, float64(got), 100)
	// Inside one host nothing crosses.
	got = plan.OnRanks(plan.Ring(plan.AllReduce, 2, 0), []int{0, 1}, 4).Cost(links, 4_000_000)
	require.InDelta(t, 2*(1000+2000), float64(got), 100)
}

func TestChoice(t *testing.T) {
	oneHost := plan.Links{}
	table := "# the cheapest algorithm with default links, one host / every rank a host of its own\n"
	for _, k := range plan.Kinds() {
		for _, ranks := range []int{1, 2, 4, 8, 64} {
			apart := plan.Links{}
			for r := range ranks {
				apart.Hosts = append(apart.Hosts, []int{r})
			}
			table += fmt.Sprintf("%-14v %2d ranks:", k, ranks)
			for _, bytes := range []int{64, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
				table += fmt.Sprintf("  %s/%s", plan.Choose(k, ranks, bytes, oneHost).Name, plan.Choose(k, ranks, bytes, apart).Name)
			}
			table += "\n"
		}
	}
	golden(t, "choice.txt", table)
}
