package plan

import (
	"fmt"
	"slices"
)

// World is who takes part in a collective, and where: ranks [0, Ranks). All
// ranks must describe it alike, since the plan depends on it.
type World struct {
	Ranks int
	// Hosts lists the ranks by host. Nil: one host.
	Hosts [][]int
	// Processes lists the ranks by process. Nil: every rank is its own.
	Processes [][]int
}

// Flat reports whether all ranks are on one host.
func (w World) Flat() bool { return len(w.Hosts) <= 1 }

// hosts returns the hosts, and panics when they are no partition of the ranks:
// a programmer's error.
func (w World) hosts() [][]int {
	if w.Hosts == nil {
		return [][]int{span(w.Ranks)}
	}
	places(w.Ranks, w.Hosts)
	return w.Hosts
}

// places returns the list that each rank is on.
func places(ranks int, lists [][]int) []int {
	at := slices.Repeat([]int{-1}, ranks)
	listed := 0
	for i, list := range lists {
		listed += len(list)
		for _, r := range list {
			if r < 0 || r >= ranks || at[r] >= 0 {
				panic(fmt.Sprintf("plan: rank %d is twice or not among the %d ranks of %v", r, ranks, lists))
			}
			at[r] = i
		}
		if len(list) == 0 {
			panic(fmt.Sprintf("plan: an empty list among %v", lists))
		}
	}
	if listed != ranks {
		panic(fmt.Sprintf("plan: %v lists %d of %d ranks", lists, listed, ranks))
	}
	return at
}

// span is 0, 1, ... n-1.
func span(n int) []int {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}
