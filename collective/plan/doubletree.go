package plan

import (
	"fmt"
	"slices"
)

// DoubleTree runs two trees side by side, each on one half of the vector. A rank
// that passes on in one is a leaf in the other, so all ranks carry alike.
//
//	first half        second half       5 ranks: the first tree has 4 and 2
//	0                 0                 inside, the second 1 and 3
//	└─── 4            └─── 1
//	   2                 3
//	  1 3               4 2
//
// Rounds as Tree's. A rank sends and receives at most 2 S bytes in AllReduce and
// S in Reduce and Broadcast: in segments (double-tree/8) it has the tree's
// latency and nearly the ring's bandwidth. (Sanders, Speck and Träff, Two-tree
// algorithms for full bandwidth broadcast, reduction and scan, 2009.)
func DoubleTree(k Kind, ranks, root int) Plan {
	if !slices.Contains([]Kind{AllReduce, Reduce, Broadcast}, k) {
		panic(fmt.Sprintf("plan: double-tree does not do %v", k))
	}
	first := Tree(k, ranks, 0)
	return Union(first, OnRanks(first, complement(ranks), ranks)).Shift(root)
}

// complement is the rank at each position of the second tree: inner ranks of the
// first, which are even, go to odd positions, which are leaves. Ranks other than
// the root are mirrored, or shifted by one where a mirror would keep them even.
func complement(n int) []int {
	ranks := make([]int, n)
	for p := 1; p < n; p++ {
		switch {
		case n%2 == 1:
			ranks[p] = n - p
		case p == 1:
			ranks[p] = n - 1
		default:
			ranks[p] = p - 1
		}
	}
	return ranks
}
