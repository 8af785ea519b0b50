package plan

import (
	"iter"
	"slices"
)

// Move is a message: rank From hands N chunks, from its chunk Src on, to rank
// To, which stores them at its chunk Dst or, with Reduce, reduces them into it.
// From and To may be equal.
type Move struct {
	From, To int
	Src, Dst int
	N        int
	Reduce   bool
}

// Round is a set of moves in flight together. Every move reads the buffers as
// they were before the round; stores and reductions apply in list order.
type Round []Move

// Plan is a collective operation as data: rounds of moves over vectors cut in
// Chunks chunks on each of Ranks ranks. Rounds may be ranged over repeatedly,
// also by several goroutines at once. A Round that it yields is valid until the
// next one: clone what you keep.
type Plan struct {
	Ranks, Chunks int
	Rounds        iter.Seq[Round]
}

// Of makes a plan of explicit rounds, which the plan keeps.
func Of(ranks, chunks int, rounds ...Round) Plan {
	return Plan{Ranks: ranks, Chunks: chunks, Rounds: slices.Values(rounds)}
}

// Collect returns the rounds as slices of their own, for tests and small plans.
func (p Plan) Collect() []Round {
	var rounds []Round
	for round := range p.Rounds {
		rounds = append(rounds, slices.Clone(round))
	}
	return rounds
}

// Count returns the number of rounds and of moves.
func (p Plan) Count() (rounds, moves int) {
	for round := range p.Rounds {
		rounds++
		moves += len(round)
	}
	return rounds, moves
}

// Cut returns the parts+1 offsets that cut n elements in equal parts. Where n
// does not divide, the first parts are longer by one: 4 over 3 is 2, 1, 1.
func Cut(n, parts int) []int {
	bounds := make([]int, parts+1)
	size, longer := n/parts, n%parts
	for i := range bounds {
		bounds[i] = i*size + min(i, longer)
	}
	return bounds
}

// mod is k modulo n, never negative.
func mod(k, n int) int { return (k%n + n) % n }
