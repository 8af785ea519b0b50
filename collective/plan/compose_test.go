package plan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

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
