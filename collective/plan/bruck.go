package plan

import (
	"fmt"
	"math/bits"
)

// Bruck meets ranks at distances 1, 2, 4 and so on around a circle, for any
// number of ranks.
//
//	5 ranks, AllGather: rank r holds  r                after 0 rounds
//	receive from r+1                  r r+1            1
//	receive from r+2                  r r+1 r+2 r+3    2
//	receive from r+4, what is missing all              3
//
// AllGather takes ceil(log2 n) rounds and (n-1)/n S bytes per rank, both the
// least possible. ReduceScatter is its reverse: sums flow where parts came from.
// AllReduce is one after the other, 2 ceil(log2 n) rounds and 2 (n-1)/n S bytes
// for any n, with partners that halving-doubling reaches for powers of two only.
// Barrier is the dissemination of Hensgen, Finkel and Manber, 1988, ceil(log2 n)
// rounds.
//
// AllToAll turns the parts such that position j is for rank r+j, in ceil(log2 n)
// rounds hands all positions that have bit i to rank r+2^i as one message, and
// turns them back: about S/2 bytes a round instead of n-1 messages, for small
// parts. Between, ranks sort their parts for the next message. All parts have one
// size. (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms
// for all-to-all communications in multiport message-passing systems, 1997; the
// reduction as in Träff, Optimal, non-pipelined reduce-scatter and allreduce
// algorithms, 2024.)
func Bruck(k Kind, ranks, _ int) Plan {
	switch k {
	case AllReduce:
		return Then(bruckReduceScatter(ranks), bruckAllGather(ranks))
	case ReduceScatter:
		return bruckReduceScatter(ranks)
	case AllGather:
		return bruckAllGather(ranks)
	case AllToAll:
		return bruckAllToAll(ranks)
	case Barrier:
		return bruckRounds(ranks, 1, false, func(round Round, r, d int) Round {
			return append(round, Move{From: r, To: mod(r+d, ranks), N: 1})
		})
	}
	panic(fmt.Sprintf("plan: bruck does not do %v", k))
}

// bruckRounds has a round for each distance d below n, rising or falling.
func bruckRounds(n, chunks int, falling bool, moves func(round Round, r, d int) Round) Plan {
	return Plan{Ranks: n, Chunks: chunks, Rounds: func(yield func(Round) bool) {
		var round Round
		count := bits.Len(uint(n - 1))
		for i := range count {
			d := 1 << i
			if falling {
				d = 1 << (count - 1 - i)
			}
			round = round[:0]
			for r := range n {
				round = moves(round, r, d)
			}
			if !yield(round) {
				return
			}
		}
	}}
}

// bruckAllGather hands what rank r holds, [r, r+d) around the circle, to rank
// r-d, which lacks it all or, in the last round, in part.
func bruckAllGather(n int) Plan {
	return bruckRounds(n, n, false, func(round Round, r, d int) Round {
		return appendAround(round, n, r, min(d, n-d), Move{From: r, To: mod(r-d, n)})
	})
}

// bruckReduceScatter goes back along the same ways: rank r hands its sums of
// [r+d, r+2d) to rank r+d and is then responsible for [r, r+d).
func bruckReduceScatter(n int) Plan {
	return bruckRounds(n, n, true, func(round Round, r, d int) Round {
		to := mod(r+d, n)
		return appendAround(round, n, to, min(d, n-d), Move{From: r, To: to, Reduce: true})
	})
}

// appendAround appends m for count chunks from first on around the circle: one
// move, or two where the run passes the last chunk.
func appendAround(round Round, n, first, count int, m Move) Round {
	m.Src, m.Dst, m.N = first, first, min(count, n-first)
	round = append(round, m)
	if rest := count - m.N; rest > 0 {
		m.Src, m.Dst, m.N = 0, 0, rest
		round = append(round, m)
	}
	return round
}
