package plan

import (
	"fmt"
	"math/bits"
)

// HalvingDoubling exchanges with partners at distances that are powers of two.
//
//	ranks    0 1 2 3    round 0: 0↔1 2↔3, half of the vector each way
//	         └┘ └┘      round 1: 0↔2 1↔3, a quarter
//	         └──┘ ...   and back in the reverse order
//
// ReduceScatter halves: a rank sends the half of its chunks that its partner
// keeps, and reduces the half that it keeps itself; log2 n rounds. AllGather
// doubles: the same in reverse. AllReduce is one after the other, 2 log2 n rounds
// and 2 (n-1)/n S bytes per rank, nearest partners first, so that the largest
// messages stay inside hosts. Reduce is halving and a gather along a binomial
// tree, Broadcast its reverse: a scatter and doubling, 2 log2 n rounds, (n-1)/n S
// twice.
//
// Where n is no power of two, p is the next below. The first 2(n-p) ranks form
// pairs; the second of a pair hands its vector to the first, which stands for
// both, and gets the result: 2 more rounds of S bytes (for AllGather and
// ReduceScatter one of them is of a part). (Rabenseifner, Optimization of
// collective reduction operations, 2004; Thakur, Rabenseifner and Gropp,
// Optimization of collective communication operations in MPICH, 2005.)
func HalvingDoubling(k Kind, ranks, root int) Plan {
	f := foldTo(ranks)
	p := len(f.first)
	whole := func(q Plan) Plan { return OnRanks(q, f.first, ranks) }
	parts := func(q Plan) Plan { return OnRanks(q.OnRuns(f.bounds, ranks), f.first, ranks) }
	switch k {
	case AllReduce:
		near := func(q Plan) Plan { return OnRanks(q, reversedBits(p), p) }
		return Then(f.in(p), whole(near(halving(p, true))), whole(near(doubling(p, true, true))), f.out(p))
	case Reduce:
		return Then(f.in(p), whole(halving(p, true)), whole(doubling(p, true, false))).Shift(root)
	case Broadcast:
		return Then(whole(halving(p, false)), whole(doubling(p, false, true)), f.out(p)).Shift(root)
	case ReduceScatter:
		return Then(f.in(ranks), parts(halving(p, true)), f.outParts(ranks))
	case AllGather:
		return Then(f.inParts(ranks), parts(doubling(p, true, true)), f.out(ranks))
	}
	panic(fmt.Sprintf("plan: halving-doubling does not do %v", k))
}

// halving cuts the run of chunks that a rank is responsible for in two until it
// has its own chunk left; partners are farthest first. With all, both partners
// send the other's half to be reduced; otherwise rank 0 scatters its vector.
func halving(p int, all bool) Plan {
	return Plan{Ranks: p, Chunks: p, Rounds: func(yield func(Round) bool) {
		var round Round
		for d := p / 2; d >= 1; d /= 2 {
			round = round[:0]
			for r := range p {
				if !all && r%(2*d) != 0 {
					continue
				}
				partner := r ^ d
				kept := partner / d * d // by the partner
				round = append(round, Move{From: r, To: partner, Src: kept, Dst: kept, N: d, Reduce: all})
			}
			if !yield(round) {
				return
			}
		}
	}}
}

// doubling is halving in reverse: the runs that ranks hold grow. Of each pair of
// partners, the first receives with gather, the second with spread. The first
// alone is a gather to rank 0; the second alone follows a scatter, after which
// the first holds what its partner does.
func doubling(p int, gather, spread bool) Plan {
	return Plan{Ranks: p, Chunks: p, Rounds: func(yield func(Round) bool) {
		var round Round
		for d := 1; d < p; d *= 2 {
			round = round[:0]
			for r := range p {
				to, held := r^d, r/d*d
				// Higher ranks of a scatter's subtree hold their own part only.
				if first := to%(2*d) == 0; first && !gather || !first && !spread {
					continue
				}
				round = append(round, Move{From: r, To: to, Src: held, Dst: held, N: d})
			}
			if !yield(round) {
				return
			}
		}
	}}
}

// reversedBits has rank r's number with its bits in reverse: on these ranks the
// farthest partners are the nearest.
func reversedBits(p int) []int {
	ranks := make([]int, p)
	for r := range ranks {
		ranks[r] = int(bits.Reverse64(uint64(r)) >> (65 - bits.Len(uint(p))) & uint64(p-1))
	}
	return ranks
}

// fold is how n ranks become a power of two: those of pairs stand for two.
type fold struct {
	n, pairs int
	first    []int // the rank that each of the power of two stands for
	bounds   []int // which parts they then own
}

func foldTo(n int) fold {
	p := 1 << (bits.Len(uint(n)) - 1)
	f := fold{n: n, pairs: n - p, bounds: []int{0}}
	for v := range p {
		at := f.bounds[v]
		f.first = append(f.first, at)
		if v < f.pairs {
			at++
		}
		f.bounds = append(f.bounds, at+1)
	}
	return f
}

// in reduces the whole vector of the second of each pair into the first's.
func (f fold) in(chunks int) Plan {
	return f.round(chunks, func(a, b int) Move { return Move{From: b, To: a, N: chunks, Reduce: true} })
}

// out hands the second the first's whole vector.
func (f fold) out(chunks int) Plan {
	return f.round(chunks, func(a, b int) Move { return Move{From: a, To: b, N: chunks} })
}

// inParts and outParts hand over the second's own part.
func (f fold) inParts(chunks int) Plan {
	return f.round(chunks, func(a, b int) Move { return Move{From: b, To: a, Src: b, Dst: b, N: 1} })
}

func (f fold) outParts(chunks int) Plan {
	return f.round(chunks, func(a, b int) Move { return Move{From: a, To: b, Src: b, Dst: b, N: 1} })
}

// round has a move for each pair of ranks a and b, and is none without pairs.
func (f fold) round(chunks int, move func(a, b int) Move) Plan {
	if f.pairs == 0 {
		return Of(f.n, chunks)
	}
	var round Round
	for i := range f.pairs {
		round = append(round, move(2*i, 2*i+1))
	}
	return Of(f.n, chunks, round)
}
