package plan

import "fmt"

// Ring passes chunks around a circle; every link carries the same bytes at all
// times (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009).
//
//	0 ──► 1
//	▲     │     n ranks, n chunks; each round every rank sends one chunk to its
//	│     ▼     right neighbour
//	3 ◄── 2
//
// ReduceScatter, n-1 rounds: in round i rank r sends chunk r-1-i and reduces
// what comes from the left into chunk r-2-i, so rank r ends with chunk r. A
// chunk that a rank sends as r-i must be received by its neighbour as the same
// chunk, which is (own rank)-1-i there: never r+i.
//
//	round 0   round 1   round 2
//	0: 3→     0: 2→     0: 1→      rank 0 sends 3, 2, 1
//	1: 0→     1: 3→     1: 2→      and ends with the sum of chunk 0
//
// AllGather, n-1 rounds: in round i rank r sends chunk r-i, first its own.
// AllReduce is one after the other, 2(n-1) rounds (6 on 4 ranks) and
// 2 (n-1)/n S bytes per rank, the least possible. A chunk's sum is
// ((x[c+1] + x[c+2]) + ...) + x[c], and every rank stores the same bits.
//
// Broadcast scatters the root's chunks along the circle: chunk j starts in round
// j and takes n-1 hops, 2(n-1) rounds in all, and every link carries S bytes once.
// Reduce is its reverse: sums move towards the root.
func Ring(k Kind, ranks, root int) Plan {
	switch k {
	case AllReduce:
		return Then(ringReduceScatter(ranks), ringAllGather(ranks))
	case ReduceScatter:
		return ringReduceScatter(ranks)
	case AllGather:
		return ringAllGather(ranks)
	case Broadcast:
		return ringBroadcast(ranks).Shift(root)
	case Reduce:
		return ringReduce(ranks).Shift(root)
	}
	panic(fmt.Sprintf("plan: ring does not do %v", k))
}

func ringReduceScatter(n int) Plan { return ringRounds(n, -1, true) }

func ringAllGather(n int) Plan { return ringRounds(n, 0, false) }

// ringRounds has n-1 rounds; in round i rank r hands chunk r+first-i on.
func ringRounds(n, first int, reduce bool) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		round := make(Round, n)
		for i := range n - 1 {
			chunk := mod(first-i, n)
			for r := range n {
				round[r] = Move{From: r, To: r + 1, Src: chunk, Dst: chunk, N: 1, Reduce: reduce}
				if chunk++; chunk == n {
					chunk = 0
				}
			}
			round[n-1].To = 0
			if !yield(round) {
				return
			}
		}
	}}
}

// ringBroadcast sends rank 0's chunks one behind the other: in round i rank r
// hands on chunk i-r.
func ringBroadcast(n int) Plan {
	return ringChain(n, func(i, r int) (int, Move) { return i - r, Move{From: r, To: r + 1} })
}

// ringReduce is the way back: in round i rank r+1 hands on chunk i-(n-2-r).
func ringReduce(n int) Plan {
	return ringChain(n, func(i, r int) (int, Move) {
		return i - (n - 2 - r), Move{From: r + 1, To: r, Reduce: true}
	})
}

// ringChain passes n chunks along the links between ranks r and r+1.
func ringChain(n int, link func(i, r int) (chunk int, m Move)) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		round := make(Round, 0, n)
		for i := range 2*n - 2 {
			round = round[:0]
			for r := range n - 1 {
				if chunk, m := link(i, r); chunk >= 0 && chunk < n {
					m.Src, m.Dst, m.N = chunk, chunk, 1
					round = append(round, m)
				}
			}
			if !yield(round) {
				return
			}
		}
	}}
}
