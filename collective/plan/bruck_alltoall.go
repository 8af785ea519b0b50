package plan

import (
	"math/bits"
	"slices"
)

// bruckAllToAll works on positions of the received parts: order[p] is how far
// the part at position p has to go, the same on all ranks. Far bits come first,
// because sorting for them moves long runs.
func bruckAllToAll(n int) Plan {
	return Plan{Ranks: n, Chunks: 2 * n, Rounds: func(yield func(Round) bool) {
		if !yield(bruckTurn(n)) {
			return
		}
		order := span(n)
		var round Round
		for d := 1 << bits.Len(uint(n-1)) / 2; d >= 1; d /= 2 {
			sorted, stay := bruckSort(order, d)
			if round = bruckMove(round[:0], order, sorted); len(round) > 0 && !yield(round) {
				return
			}
			order = sorted
			round = round[:0]
			for r := range n {
				round = append(round, Move{From: r, To: mod(r+d, n), Src: n + stay, Dst: n + stay, N: n - stay})
			}
			if !yield(round) {
				return
			}
		}
		yield(bruckTurnBack(round[:0], order))
	}}
}

// bruckTurn copies the part for rank r+j to position j.
func bruckTurn(n int) Round {
	var round Round
	for r := range n {
		round = append(round, Move{From: r, To: r, Src: r, Dst: n, N: n - r})
		if r > 0 {
			round = append(round, Move{From: r, To: r, Dst: 2*n - r, N: r})
		}
	}
	return round
}

// bruckSort puts what has bit d behind what has not, and counts the latter.
func bruckSort(order []int, d int) (sorted []int, stay int) {
	var away []int
	for _, j := range order {
		if j&d == 0 {
			sorted = append(sorted, j)
		} else {
			away = append(away, j)
		}
	}
	return append(sorted, away...), len(sorted)
}

// bruckMove appends every rank's moves of its parts from one order to another.
func bruckMove(round Round, order, sorted []int) Round {
	n := len(order)
	if slices.Equal(order, sorted) {
		return round
	}
	at := make([]int, n)
	for p, j := range order {
		at[j] = p
	}
	for p := 0; p < n; {
		first, run := at[sorted[p]], 1
		for p+run < n && at[sorted[p+run]] == first+run {
			run++
		}
		if first != p {
			for r := range n {
				round = append(round, Move{From: r, To: r, Src: n + first, Dst: n + p, N: run})
			}
		}
		p += run
	}
	return round
}

// bruckTurnBack appends the last moves: what went j ranks came from rank r-j.
func bruckTurnBack(round Round, order []int) Round {
	n := len(order)
	for r := range n {
		for p, j := range order {
			if from := mod(r-j, n); from != p {
				round = append(round, Move{From: r, To: r, Src: n + p, Dst: n + from, N: 1})
			}
		}
	}
	return round
}
