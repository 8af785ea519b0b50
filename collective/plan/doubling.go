package plan

import "fmt"

// Doubling exchanges whole vectors with partners at distances 1, 2, 4, ...; both
// partners reduce what they get into their own.
//
//	ranks    0 1 2 3    round 0: 0↔1 2↔3, all of the vector each way
//	         └┘ └┘      round 1: 0↔2 1↔3, the same
//	         └──┘ ...
//
// AllReduce takes log2 n rounds, half as many as HalvingDoubling, and sends S
// bytes in each: for vectors that cost no more than their messages. All ranks get
// the same bits, because a+b and b+a have the same. Where n is no power of two,
// the second ranks of pairs hand their vector to the first and get the result, 2
// more rounds. (Recursive doubling: Thakur, Rabenseifner and Gropp, Optimization
// of collective communication operations in MPICH, 2005.)
func Doubling(k Kind, ranks, _ int) Plan {
	if k != AllReduce {
		panic(fmt.Sprintf("plan: doubling does not do %v", k))
	}
	f := foldTo(ranks)
	return Then(f.in(1), OnRanks(exchanges(len(f.first)), f.first, ranks), f.out(1))
}

// exchanges are the rounds of p ranks, a power of two.
func exchanges(p int) Plan {
	return Plan{Ranks: p, Chunks: 1, Rounds: func(yield func(Round) bool) {
		var round Round
		for d := 1; d < p; d *= 2 {
			round = round[:0]
			for r := range p {
				round = append(round, Move{From: r, To: r ^ d, N: 1, Reduce: true})
			}
			if !yield(round) {
				return
			}
		}
	}}
}
