package launch

import (
	"cmp"
	"fmt"
	"slices"
)

// processor is a logical processor of this host.
type processor struct {
	number       int
	socket, core int
}

// share returns the processors of rank number rank of ranks on a host. Each rank gets
// as many, give or take one, and those of a core and of a package stay together as far
// as that goes.
func share(all []processor, rank, ranks int) []int {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b processor) int {
		return cmp.Or(cmp.Compare(a.socket, b.socket), cmp.Compare(a.core, b.core), cmp.Compare(a.number, b.number))
	})
	var out []int
	for _, p := range sorted[rank*len(all)/ranks : (rank+1)*len(all)/ranks] {
		out = append(out, p.number)
	}
	return out
}

// TooFewError is that a host has fewer processors than its ranks want.
type TooFewError struct{ Ranks, Each, Processors int }

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%d ranks of this host want %d processors each, and it lets them have %d", e.Ranks, e.Each, e.Processors)
}

// KeepApart binds all threads of this process, those that are still to come
// included, to its part of the processors that it may use, and returns how many it
// has now; 0 where the system cannot. All ranks of the host call it, who may use the
// same ones, and each gets others than the rest. With fewer than least for each
// it changes nothing and returns a *TooFewError.
//
// Ranks that wait for each other in turns need it: a system puts a process that wakes
// up where it finds a processor, which may be the one that another rank, which has just
// woken it, goes on with, and lets the two share it for a while, although it would have
// another one for either.
func KeepApart(p Place, least int) (int, error) {
	all, err := processors()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	if len(all) < least*p.LocalSize {
		return 0, &TooFewError{p.LocalSize, least, len(all)}
	}
	own := share(all, p.LocalRank, p.LocalSize)
	return len(own), bind(own)
}
