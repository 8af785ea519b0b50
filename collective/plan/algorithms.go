package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Algorithm is one way to carry out some operations.
type Algorithm struct {
	Name  string
	Kinds []Kind
	// Plan returns the plan of a kind in Kinds. root is 0 where the kind has
	// no root.
	Plan func(k Kind, w World, root int) Plan
	// Pipelines says that ranks idle in some rounds, so that segments pay.
	Pipelines bool
	// ByHost says that it differs from the flat ones on several hosts only.
	ByHost bool
	// Crowded says that some rank handles n-1 messages at least, and twice as
	// many in an AllReduce: the selector need not look closer on many ranks.
	Crowded bool
	// UpTo is the size of vectors, in bytes, that the selector takes it for at
	// most; 0: any. Longer messages may have to be asked for first, which costs
	// do not tell.
	UpTo int
	// Relays lists the kinds whose parts pass through other ranks, so that all
	// parts must have one size.
	Relays []Kind
	// Sized returns the plan for vectors of that many bytes where it depends on
	// them, and ranks send ahead of what they receive; nil: it does not. Such
	// algorithms are for links whose queues costs do not tell: Choose takes none.
	Sized func(k Kind, w World, root, bytes int) Plan
}

// For returns the plan of a kind in Kinds for vectors of that many bytes.
func (a Algorithm) For(k Kind, w World, root, bytes int) Plan {
	if a.Sized != nil {
		return a.Sized(k, w, root, bytes)
	}
	return a.Plan(k, w, root)
}

// Does reports whether the algorithm has a plan for k.
func (a Algorithm) Does(k Kind) bool { return slices.Contains(a.Kinds, k) }

// Algorithms lists all algorithms; those that are quick to price and often the
// cheapest come first, so that the selector soon knows what to beat. To add one,
// add a file and a line.
func Algorithms() []Algorithm {
	whole := []Kind{AllReduce, Reduce, Broadcast}
	parts := []Kind{AllGather, ReduceScatter}
	with := func(kinds []Kind, more ...Kind) []Kind { return append(slices.Clone(kinds), more...) }
	return []Algorithm{
		{Name: "naive", Kinds: Kinds(), Plan: flat(Naive), Crowded: true},
		{Name: "halving-doubling", Kinds: with(whole, parts...), Plan: flat(HalvingDoubling)},
		{Name: "doubling", Kinds: []Kind{AllReduce}, Plan: flat(Doubling), UpTo: 32 << 10},
		{Name: "bruck", Kinds: with(parts, AllReduce, AllToAll, Barrier), Plan: flat(Bruck), Relays: []Kind{AllToAll}},
		{Name: "tree", Kinds: with(whole, Barrier), Plan: flat(Tree), Pipelines: true},
		{Name: "double-tree", Kinds: whole, Plan: flat(DoubleTree), Pipelines: true},
		{Name: "ring", Kinds: with(whole, parts...), Plan: flat(Ring), Crowded: true},
		{Name: "pairwise", Kinds: with(parts, AllToAll), Plan: flat(Pairwise), Crowded: true},
		{Name: "direct", Kinds: Kinds(), Plan: flat(Direct), Crowded: true},
		{Name: "hierarchical", Kinds: with(whole, AllGather, ReduceScatter, Barrier), Plan: Hierarchical, Pipelines: true, ByHost: true},
		{Name: "paced", Kinds: []Kind{AllReduce}, Plan: Paced, ByHost: true, Sized: pacedSized},
	}
}

// flat makes an algorithm of one that does not care about hosts.
func flat(f func(k Kind, ranks, root int) Plan) func(Kind, World, int) Plan {
	return func(k Kind, w World, root int) Plan { return f(k, w.Ranks, root) }
}

// maxSegments bounds the segments of a name: beyond them a pipeline gains
// nothing.
const maxSegments = 1024

// Segmented returns a in pipelined form, named such as tree/8 (Plan.Segment).
// It does only kinds whose vectors can be cut.
func (a Algorithm) Segmented(segments int) Algorithm {
	plan := a.Plan
	a.Name += "/" + strconv.Itoa(segments)
	a.Sized = nil
	a.Kinds = slices.DeleteFunc(slices.Clone(a.Kinds), func(k Kind) bool { return k == AllToAll || k == Barrier })
	a.Plan = func(k Kind, w World, root int) Plan { return plan(k, w, root).Segment(k, segments) }
	return a
}

// Lookup returns the algorithm of that name: one of the list, or its segmented
// form such as tree/8.
func Lookup(name string) (Algorithm, error) {
	base, segments, segmented := strings.Cut(name, "/")
	for _, a := range Algorithms() {
		if a.Name != base {
			continue
		}
		if !segmented {
			return a, nil
		}
		n, err := strconv.Atoi(segments)
		if err != nil || n < 1 || n > maxSegments {
			return Algorithm{}, fmt.Errorf("algorithm %q: segments are a number from 1 to %d", name, maxSegments)
		}
		return a.Segmented(n), nil
	}
	known := []string{auto}
	for _, a := range Algorithms() {
		known = append(known, a.Name)
	}
	return Algorithm{}, fmt.Errorf("unknown algorithm %q%s", name, hint(base, known))
}
