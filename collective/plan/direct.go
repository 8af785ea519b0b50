package plan

import "fmt"

// Direct has every rank talk to every other at once.
//
//	0 ──► 1      each chunk has an owner; everybody sends it its chunk,
//	│ ╲ ╱ ▲      the owner sums in rank order and sends the sum to all
//	▼ ╱ ╲ │
//	3 ──► 2
//
// ReduceScatter and AllGather take 1 round, AllReduce both: 2 rounds and
// 2 (n-1)/n S bytes per rank, as few bytes as the ring, but 2 (n-1) messages at
// once. Sums are ((b0+b1)+b2)+... for every chunk, whoever owns it: what a rank
// that reads all buffers in shared memory computes. An owner's own value is added
// when its turn comes, by a move to itself. Reduce is ReduceScatter and a gather,
// Broadcast a scatter and AllGather: 2 rounds, and the root sends S bytes where
// naive sends (n-1) S. Gather, Scatter and AllToAll are naive's: one round already.
// Barrier is one round of n-1 signals each. (The direct algorithm of van de Geijn,
// On global combine operations, 1994, and of all shared-memory collectives.)
func Direct(k Kind, ranks, root int) Plan {
	switch k {
	case AllReduce:
		return Then(directReduceScatter(ranks), directAllGather(ranks, -1))
	case ReduceScatter:
		return directReduceScatter(ranks)
	case AllGather:
		return directAllGather(ranks, -1)
	case Reduce:
		return Then(directReduceScatter(ranks), partsToRoot(ranks, root))
	case Broadcast:
		return Then(fromRoot(ranks, ranks, root, true), directAllGather(ranks, root))
	case Gather, Scatter, AllToAll:
		return Naive(k, ranks, root)
	case Barrier:
		return directBarrier(ranks)
	}
	panic(fmt.Sprintf("plan: direct does not do %v", k))
}

// directAllGather sends every rank's part to all others but one that has all
// already, or to all with -1. Nobody waits for two at once.
func directAllGather(n, except int) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		round := make(Round, 0, n*n)
		for step := 1; step < n; step++ {
			for from := range n {
				if to := mod(from+step, n); to != except {
					round = append(round, Move{From: from, To: to, Src: from, Dst: from, N: 1})
				}
			}
		}
		if len(round) > 0 {
			yield(round)
		}
	}}
}

func directBarrier(n int) Plan {
	p := directAllGather(n, -1)
	return p.mapped(n, 1, func(m Move) Move { return Move{From: m.From, To: m.To, N: 1} })
}

// directReduceScatter sums in rank order: the first value is stored, the others
// are added, among them the owner's own as it was before the round. Owners 0 and
// 1 can start from their own value, because b1+b0 is b0+b1. Each receiver's moves
// come in the order of senders; each sender starts with its right neighbour, so
// that not all begin with one.
func directReduceScatter(n int) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		round := make(Round, 0, n*n)
		for from := range n {
			for step := range n {
				if to := mod(from+1+step, n); to != from || to >= 2 {
					round = append(round, Move{From: from, To: to, Src: to, Dst: to, N: 1, Reduce: from > 0 || to < 2})
				}
			}
		}
		if len(round) > 0 {
			yield(round)
		}
	}}
}
