package plan

import (
	"fmt"
	"math/bits"
)

// Tree reduces up a binary tree and broadcasts down it.
//
//	0                    the root, above an in-order tree of all others: an odd
//	└─── 4               rank is a leaf, rank p with lowest bit b has its
//	   2   6             children b/2 to both sides, so subtrees are runs of
//	  1 3 5 7            neighbours and stay inside hosts
//
// Reduce and Broadcast take ceil(log2 n) rounds, AllReduce and Barrier twice
// that: 2 up and 2 down on 4 ranks. A rank sends S bytes up and at most 2 S down,
// and receives as much in the other direction: least latency, and half the ring's
// bandwidth or less, unless segmented. In n segments of S/n all levels work at
// once (tree/8; Sanders, Speck and Träff, Two-tree algorithms for full bandwidth
// broadcast, reduction and scan, 2009, has this tree as one of its two).
func Tree(k Kind, ranks, root int) Plan {
	up, down := treeUp(ranks, root, k != Barrier), treeDown(ranks, root)
	switch k {
	case AllReduce, Barrier:
		return Then(up, down)
	case Reduce:
		return up
	case Broadcast:
		return down
	}
	panic(fmt.Sprintf("plan: tree does not do %v", k))
}

// parent is the parent of position p > 0 in the tree of n positions.
func parent(p, n int) int {
	lowest := p & -p
	if up := p&^lowest | lowest<<1; up < n {
		return up
	}
	return p &^ lowest
}

// treeUp hands vectors up to the root: in round i the positions whose lowest bit
// is bit i hand theirs to their parents. Positions follow the root in rank order.
func treeUp(n, root int, reduce bool) Plan {
	return treeLevels(n, false, func(p, parent int) Move {
		return Move{From: p, To: parent, N: 1, Reduce: reduce}
	}).Shift(root)
}

// treeDown hands the root's vector down, level by level.
func treeDown(n, root int) Plan {
	return treeLevels(n, true, func(p, parent int) Move {
		return Move{From: parent, To: p, N: 1}
	}).Shift(root)
}

// treeLevels has a round for each level of the tree.
func treeLevels(n int, rootFirst bool, move func(p, parent int) Move) Plan {
	return Plan{Ranks: n, Chunks: 1, Rounds: func(yield func(Round) bool) {
		var round Round
		height := bits.Len(uint(n - 1))
		for i := range height {
			lowest := 1 << i
			if rootFirst {
				lowest = 1 << (height - 1 - i)
			}
			round = round[:0]
			for p := lowest; p < n; p += 2 * lowest {
				round = append(round, move(p, parent(p, n)))
			}
			if !yield(round) {
				return
			}
		}
	}}
}
