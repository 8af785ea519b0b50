package plan_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// TestRounds holds what the algorithms' comments promise.
func TestRounds(t *testing.T) {
	for n := 1; n <= 70; n++ {
		log := bits.Len(uint(n - 1)) // rounded up
		fold := 0
		if n&(n-1) != 0 {
			fold = 1
		}
		down := bits.Len(uint(n)) - 1
		pairs := min(n-1, 1) // rounds of what is done at once
		for _, tt := range []struct {
			name string
			p    plan.Plan
			want int
		}{
			{"tree", plan.Tree(plan.AllReduce, n, 0), 2 * log},
			{"tree", plan.Tree(plan.Broadcast, n, n-1), log},
			{"double-tree", plan.DoubleTree(plan.AllReduce, n, 0), 2 * log},
			{"halving-doubling", plan.HalvingDoubling(plan.AllReduce, n, 0), 2*down + 2*fold},
			{"halving-doubling", plan.HalvingDoubling(plan.ReduceScatter, n, 0), down + 2*fold},
			{"halving-doubling", plan.HalvingDoubling(plan.Broadcast, n, 0), 2*down + fold},
			{"doubling", plan.Doubling(plan.AllReduce, n, 0), down + 2*fold},
			{"bruck", plan.Bruck(plan.AllReduce, n, 0), 2 * log},
			{"bruck", plan.Bruck(plan.Barrier, n, 0), log},
			{"ring", plan.Ring(plan.AllReduce, n, 0), 2 * (n - 1)},
			{"ring", plan.Ring(plan.Reduce, n, 0), 2 * (n - 1)},
			{"pairwise", plan.Pairwise(plan.ReduceScatter, n, 0), n - 1},
			{"direct", plan.Direct(plan.AllReduce, n, 0), 2 * pairs},
			{"direct", plan.Direct(plan.Barrier, n, 0), pairs},
		} {
			rounds := 0
			for round := range tt.p.Rounds {
				require.NotEmpty(t, round, "%s on %d ranks", tt.name, n)
				rounds++
			}
			require.Equal(t, tt.want, rounds, "%s on %d ranks", tt.name, n)
		}
	}
}

// TestBytes: no rank of the bandwidth-optimal all-reduces sends or receives more
// than 2 (n-1)/n of the vector.
func TestBytes(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for _, a := range []string{"ring", "bruck", "direct", "halving-doubling"} {
			if a == "halving-doubling" && n&(n-1) != 0 {
				continue // folding costs more
			}
			algorithm, err := plan.Lookup(a)
			require.NoError(t, err)
			p := algorithm.Plan(plan.AllReduce, plan.World{Ranks: n}, 0)
			require.Equal(t, n, p.Chunks)
			sent, received := make([]int, n), make([]int, n)
			for round := range p.Rounds {
				for _, m := range round {
					if m.From != m.To {
						sent[m.From] += m.N
						received[m.To] += m.N
					}
				}
			}
			for r := range n {
				require.Equal(t, 2*(n-1), sent[r], "%s: rank %d of %d", a, r, n)
				require.Equal(t, 2*(n-1), received[r], "%s: rank %d of %d", a, r, n)
			}
		}
	}
}

// TestTwoTreesShareTheLoad: who passes on in one tree is a leaf in the other.
func TestTwoTreesShareTheLoad(t *testing.T) {
	for n := 2; n <= 130; n++ {
		inner := [2][]bool{make([]bool, n), make([]bool, n)}
		for round := range plan.DoubleTree(plan.Reduce, n, 0).Rounds {
			for _, m := range round {
				inner[m.Dst][m.To] = true
			}
		}
		for r := 1; r < n; r++ {
			require.False(t, inner[0][r] && inner[1][r], "rank %d of %d", r, n)
		}
	}
}

// TestDirectSumsInRankOrder: ((b0+b1)+b2)+..., whoever owns the chunk.
func TestDirectSumsInRankOrder(t *testing.T) {
	for n := 1; n <= 12; n++ {
		// One rank adds all in order, then hands the sum out.
		var in, out plan.Round
		for r := 1; r < n; r++ {
			in = append(in, plan.Move{From: r, To: 0, N: n, Reduce: true})
			out = append(out, plan.Move{From: 0, To: r, N: n})
		}
		ordered := plan.Of(n, n, in, out)
		require.NoError(t, plan.SameOrder(plan.Direct(plan.AllReduce, n, 0), ordered, plan.AllReduce, 0))
	}
}

func TestMultiRoot(t *testing.T) {
	for _, roots := range [][]int{{0}, {0, 3}, {1, 2, 4}, {4, 3, 2, 1, 0}} {
		for _, k := range []plan.Kind{plan.AllReduce, plan.Barrier} {
			p := plan.MultiRoot(k, 5, roots)
			require.NoError(t, p.Check(k, 0))
			rounds, _ := p.Count()
			require.Equal(t, 6, rounds)
		}
	}
}

// TestSegmentedAlgorithmsAreProved, on one host and on several.
func TestSegmentedAlgorithmsAreProved(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, segments := range []int{1, 2, 3, 7} {
			s, err := plan.Lookup(fmt.Sprintf("%s/%d", a.Name, segments))
			require.NoError(t, err)
			for _, k := range s.Kinds {
				for n := 1; n <= 9; n++ {
					for _, w := range append(worlds(a, n), hostsOf(n, 3)) {
						for _, root := range roots(k, n) {
							p, whole := s.Plan(k, w, root), a.Plan(k, w, root)
							require.NoError(t, p.Check(k, root), "%s on %v, root %d", s.Name, w, root)
							require.Equal(t, segments*whole.Chunks, p.Chunks)
							rounds, _ := p.Count()
							if all, _ := whole.Count(); all > 0 {
								require.Equal(t, all+segments-1, rounds)
							}
						}
					}
				}
			}
		}
	}
	p := plan.Ring(plan.AllReduce, 5, 0).Segment(plan.AllReduce, 3)
	for range p.Rounds { // a consumer that stops early
		break
	}
	require.Panics(t, func() { p.Segment(plan.AllReduce, 0) })
	require.Panics(t, func() { p.Segment(plan.AllToAll, 2) })
}

// TestHierarchicalRounds: all hosts work at once.
func TestHierarchicalRounds(t *testing.T) {
	w := hostsOf(16, 4)
	for k, want := range map[plan.Kind]int{
		plan.AllReduce:     1 + 4 + 1,
		plan.Reduce:        2 + 2,
		plan.Broadcast:     2 + 2,
		plan.AllGather:     2,
		plan.ReduceScatter: 2,
		plan.Barrier:       1 + 2 + 1,
	} {
		rounds, _ := plan.Hierarchical(k, w, 5).Count()
		require.Equal(t, want, rounds, "%v", k)
	}
}

func TestAlgorithmsRefuseOtherKinds(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range plan.Kinds() {
			if !a.Does(k) {
				require.Panics(t, func() { a.Plan(k, plan.World{Ranks: 4}, 0) }, "%s %v", a.Name, k)
			}
		}
	}
}
