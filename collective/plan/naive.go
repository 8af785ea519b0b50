package plan

import "fmt"

// Naive goes through one rank: everything to the root, summed there (its own
// value first, then rising ranks), and out again.
//
//	0 ──────┐
//	1 ───┐  ▼        0 ◄──┐
//	2 ──►root   then 1 ◄──root
//	3 ──────▲        3 ◄──┘
//
// AllReduce, AllGather, ReduceScatter and Barrier take 2 rounds, all others 1.
// The root sends and receives (n-1) S bytes for a vector of S: correct for every
// kind, simple to follow, and the yardstick of all others. Kinds without a root
// use rank 0. AllToAll has no root: every pair exchanges its part at once.
func Naive(k Kind, ranks, root int) Plan {
	chunks := 1
	if k.Parts() {
		chunks = ranks
	}
	switch k {
	case AllReduce, Barrier:
		return Then(toRoot(ranks, chunks, root, k == AllReduce), fromRoot(ranks, chunks, root, false))
	case Reduce:
		return toRoot(ranks, chunks, root, true)
	case Broadcast:
		return fromRoot(ranks, chunks, root, false)
	case AllGather:
		return Then(partsToRoot(ranks, root), fromRoot(ranks, chunks, root, false))
	case ReduceScatter:
		return Then(toRoot(ranks, chunks, root, true), fromRoot(ranks, chunks, root, true))
	case Gather:
		return partsToRoot(ranks, root)
	case Scatter:
		return fromRoot(ranks, chunks, root, true)
	case AllToAll:
		return allPairs(ranks)
	}
	panic(fmt.Sprintf("plan: naive does not do %v", k))
}

// toRoot hands every rank's whole vector to the root.
func toRoot(ranks, chunks, root int, reduce bool) Plan {
	var round Round
	for r := range ranks {
		if r != root {
			round = append(round, Move{From: r, To: root, N: chunks, Reduce: reduce})
		}
	}
	return Of(ranks, chunks, round)
}

// fromRoot hands every rank the root's whole vector, or its part only.
func fromRoot(ranks, chunks, root int, part bool) Plan {
	var round Round
	for r := range ranks {
		m := Move{From: root, To: r, N: chunks}
		if part {
			m.Src, m.Dst, m.N = r, r, 1
		}
		if r != root {
			round = append(round, m)
		}
	}
	return Of(ranks, chunks, round)
}

// partsToRoot hands every rank's own part to the root.
func partsToRoot(ranks, root int) Plan {
	var round Round
	for r := range ranks {
		if r != root {
			round = append(round, Move{From: r, To: root, Src: r, Dst: r, N: 1})
		}
	}
	return Of(ranks, ranks, round)
}

// allPairs is an AllToAll in one round.
func allPairs(ranks int) Plan {
	return Plan{Ranks: ranks, Chunks: 2 * ranks, Rounds: func(yield func(Round) bool) {
		var round Round
		for step := range ranks {
			for r := range ranks {
				to := mod(r+step, ranks)
				round = append(round, Move{From: r, To: to, Src: to, Dst: ranks + r, N: 1})
			}
		}
		yield(round)
	}}
}
