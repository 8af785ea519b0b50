package plan

import "fmt"

// Pairwise meets every other rank once.
//
//	round s:  r ──► r+s        n-1 rounds after the own part's copy; every rank
//	          r ◄── r-s        sends one part and receives one part per round
//
// AllToAll moves (n-1)/n S bytes per rank, the least possible, and never has two
// senders at one receiver. AllGather sends the own part to all others, as the
// second half of a 16-bit AllReduce does: same bytes as the ring, but a part
// makes one hop and waits for nobody but its owner. ReduceScatter sends every
// owner its chunk, which is summed as x[r] + x[r-1] + x[r-2]... by owner r.
func Pairwise(k Kind, ranks, _ int) Plan {
	switch k {
	case AllToAll:
		return Plan{Ranks: ranks, Chunks: 2 * ranks, Rounds: pairRounds(ranks, 0, func(r, to int) Move {
			return Move{From: r, To: to, Src: to, Dst: ranks + r, N: 1}
		})}
	case AllGather:
		return Plan{Ranks: ranks, Chunks: ranks, Rounds: pairRounds(ranks, 1, func(r, to int) Move {
			return Move{From: r, To: to, Src: r, Dst: r, N: 1}
		})}
	case ReduceScatter:
		return Plan{Ranks: ranks, Chunks: ranks, Rounds: pairRounds(ranks, 1, func(r, to int) Move {
			return Move{From: r, To: to, Src: to, Dst: to, N: 1, Reduce: true}
		})}
	}
	panic(fmt.Sprintf("plan: pairwise does not do %v", k))
}

// pairRounds has one round for each distance from first to n-1.
func pairRounds(n, first int, move func(r, to int) Move) func(func(Round) bool) {
	return func(yield func(Round) bool) {
		round := make(Round, n)
		for step := first; step < n; step++ {
			for r := range n {
				round[r] = move(r, mod(r+step, n))
			}
			if !yield(round) {
				return
			}
		}
	}
}
