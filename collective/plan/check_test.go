package plan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// TestWrongRingIndex: a ring that sends chunk r-i but receives into chunk r+i
// mixes the sums of different chunks.
func TestWrongRingIndex(t *testing.T) {
	const n = 4
	var rounds []plan.Round
	for i := range n - 1 {
		var round plan.Round
		for r := range n {
			to := (r + 1) % n
			round = append(round, plan.Move{From: r, To: to, Src: (r - i + n) % n, Dst: (to + i) % n, N: 1, Reduce: true})
		}
		rounds = append(rounds, round)
	}
	err := plan.Of(n, n, rounds...).Check(plan.ReduceScatter, 0)
	require.EqualError(t, err, "reduce-scatter on 4 ranks: round 0, move 0 (0:0>1:1+): reduces chunk 0 of rank 0 into another chunk, 1 of rank 1")
}

func TestAnyDroppedMoveIsFound(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			rounds := a.Plan(k, plan.World{Ranks: 5}, 0).Collect()
			for i, round := range rounds {
				for j := range round {
					wrong := slices.Clone(rounds)
					wrong[i] = slices.Delete(slices.Clone(round), j, j+1)
					p := plan.Of(5, a.Plan(k, plan.World{Ranks: 5}, 0).Chunks, wrong...)
					require.Error(t, p.Check(k, 0), "%s %v without move %d of round %d", a.Name, k, j, i)
				}
			}
		}
	}
}

func TestAnyRepeatedReductionIsFound(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			rounds := a.Plan(k, plan.World{Ranks: 4}, 0).Collect()
			for i, round := range rounds {
				for j, m := range round {
					if !m.Reduce {
						continue
					}
					wrong := slices.Clone(rounds)
					wrong[i] = append(slices.Clone(round), m)
					p := plan.Of(4, a.Plan(k, plan.World{Ranks: 4}, 0).Chunks, wrong...)
					require.Error(t, p.Check(k, 0), "%s %v with move %d of round %d twice", a.Name, k, j, i)
				}
			}
		}
	}
}

func TestErrorsNameRoundMoveAndChunk(t *testing.T) {
	tests := []struct {
		name, text, want string
		kind             plan.Kind
	}{
		{"twice", "plan 2 ranks 1 chunks\n1:0>0:0+ 1:0>0:0+\n0:0>1:0", "all-reduce on 2 ranks: at the end chunk 0 of rank 0 counts rank 1 twice, since move 1 of round 0: it is (1+(0+1)) of chunk 0", plan.AllReduce},
		{"missing", "plan 3 ranks 1 chunks\n1:0>0:0+\n0:0>1:0 0:0>2:0", "all-reduce on 3 ranks: at the end chunk 0 of rank 0 lacks rank 2: it is (0+1) of chunk 0", plan.AllReduce},
		{"empty", "plan 2 ranks 2 chunks\n1:0>0:0", "all-gather on 2 ranks: round 0, move 0 (1:0>0:0): chunk 0 of rank 1 holds nothing yet", plan.AllGather},
		{"into nothing", "plan 2 ranks 1 chunks\n0:0>1:0+", "broadcast on 2 ranks: round 0, move 0 (0:0>1:0+): reduces into chunk 0 of rank 1, which holds nothing", plan.Broadcast},
		{"order", "plan 3 ranks 1 chunks\n1:0>0:0+ 2:0>0:0+ 2:0>1:0+ 0:0>1:0+ 0:0>2:0+ 1:0>2:0+", "another order", plan.AllReduce},
		{"wrong place", "plan 2 ranks 4 chunks\n0:0>0:2 0:1>1:2 1:0>0:2 1:1>1:3", "all-to-all on 2 ranks: at the end chunk 2 of rank 0 holds rank 1's chunk 0 instead of rank 0's chunk 0", plan.AllToAll},
		{"barrier", "plan 3 ranks 1 chunks\n0:0>1:0 1:0>2:0 2:0>0:0", "barrier on 3 ranks: at the end rank 0 has not heard of rank 1", plan.Barrier},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := plan.Parse(tt.text)
			require.NoError(t, err)
			require.ErrorContains(t, p.Check(tt.kind, 0), tt.want)
		})
	}
	require.ErrorContains(t, plan.Of(1<<20, 1<<20).Check(plan.AllReduce, 0), "too many to prove")
	require.ErrorContains(t, plan.Of(3, 4).Check(plan.Gather, 0), "multiple")
	require.ErrorContains(t, plan.Of(3, 4).Check(plan.AllToAll, 0), "two per rank")
	require.ErrorContains(t, plan.Of(3, 4).Check(plan.Reduce, 3), "root 3 of 3")
	require.ErrorContains(t, plan.Of(2, 1, plan.Round{{From: 0, To: 2, N: 1}}).Check(plan.Barrier, 0), "no such rank")
	require.ErrorContains(t, plan.Of(2, 1, plan.Round{{From: 0, To: 1, N: 2}}).Check(plan.AllReduce, 0), "no such chunks")
}

// TestDoublingIsCheap: an expression whose tree is 2^64 leaves is refused at
// once.
func TestDoublingIsCheap(t *testing.T) {
	rounds := make([]plan.Round, 64)
	for i := range rounds {
		rounds[i] = plan.Round{{From: 0, To: 0, N: 1, Reduce: true}}
	}
	require.ErrorContains(t, plan.Of(2, 1, rounds...).Check(plan.Reduce, 0), "counts rank 0 twice, since move 0 of round 0")
}

func TestSameOrder(t *testing.T) {
	k := plan.AllReduce
	ring := plan.Ring(k, 4, 0)
	require.NoError(t, plan.SameOrder(ring, plan.Of(4, 4, ring.Collect()...), k, 0))
	naive := plan.Naive(k, 4, 0).Refine(4)
	require.ErrorContains(t, plan.SameOrder(ring, naive, k, 0), "chunk 0 of rank 0 is")
	// Two ranks: a+b and b+a have the same bits.
	require.NoError(t, plan.SameOrder(plan.Ring(k, 2, 0), plan.Naive(k, 2, 0).Refine(2), k, 0))
	require.Error(t, plan.SameOrder(ring, plan.Naive(k, 4, 0), k, 0))
}

// TestHazards: only Bruck's turning parts, the owner's own value of a direct sum
// and what partners of doubling exchange need copies. (A barrier's chunk has no content to copy.)
func TestHazards(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			if k == plan.Barrier {
				continue
			}
			p := a.Plan(k, plan.World{Ranks: 7}, 0)
			count := len(slices.Collect(p.Hazards()))
			switch direct := a.Name == "direct" || a.Name == "hierarchical"; {
			case a.Name == "bruck" && k == plan.AllToAll:
				require.Positive(t, count)
			case direct && (k == plan.AllReduce || k == plan.ReduceScatter && a.Name == "direct" || k == plan.Reduce && a.Name == "direct"):
				require.Equal(t, 5, count, "%s %v", a.Name, k)
			case a.Name == "doubling":
				require.Equal(t, 8, count) // 4 ranks in each of 2 rounds
			default:
				require.Zero(t, count, "%s %v", a.Name, k)
			}
		}
	}
	// Both ranks exchange one chunk in place.
	p, err := plan.Parse("plan 2 ranks 2 chunks\n-\n0:0>1:0+ 1:0>0:0+ 0:1>1:1")
	require.NoError(t, err)
	require.Equal(t, []plan.Hazard{{Round: 1, Move: 0, Rank: 0}, {Round: 1, Move: 1, Rank: 1}}, slices.Collect(p.Hazards()))
}
