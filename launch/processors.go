package launch

import (
	"cmp"
	"fmt"
	"runtime"
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
// same ones, and each gets others than the rest. With fewer than least for each it
// changes nothing and returns a *TooFewError.
func KeepApart(p Place, least int) (int, error) {
	own, err := ownShare(p, least)
	if err != nil || own == nil {
		return 0, err
	}
	return len(own), bind(own)
}

// KeepThreadApart does so with the thread of the calling goroutine alone, which stays
// on it, and leaves all others where they are.
//
// Ranks that compute on one thread and wait for each other in turns need it: a system
// puts a thread that wakes up where it finds a processor, which may be the one that
// another rank, which has just woken it, goes on with, and lets the two share it for a
// while, although it would have another one for either. Threads that send and receive
// go where nobody computes, at best: where a rank waits for what they bring.
func KeepThreadApart(p Place) error {
	own, err := ownShare(p, 1)
	if err != nil || own == nil {
		return err
	}
	runtime.LockOSThread()
	if err := bindThread(0, own); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

// ownShare returns the processors of a rank; nil where the system binds nothing.
func ownShare(p Place, least int) ([]int, error) {
	all, err := processors()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) < least*p.LocalSize {
		return nil, &TooFewError{p.LocalSize, least, len(all)}
	}
	return share(all, p.LocalRank, p.LocalSize), nil
}
