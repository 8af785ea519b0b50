package collective

import (
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// layout tells where a run of a rank's chunks lies.
type layout func(chunk, n int) region

// within is the layout of chunks with these bounds in mem.
func within(mem memory, bounds []int) layout {
	return func(chunk, n int) region { return region{mem, bounds[chunk], bounds[chunk+n]} }
}

// view is where a rank's chunks lie while a plan runs: at their place, or, with a
// base, there until the plan first writes them. So an input that must stay as it
// is costs no copy.
type view struct {
	place layout
	base  layout
	fresh []bool // with a base: chunks that still lie there
}

func newView(place layout) *view { return &view{place: place} }

// over makes a view whose chunks start at base.
func over(base, place layout, chunks int) *view {
	return &view{place: place, base: base, fresh: slices.Repeat([]bool{true}, chunks)}
}

// state is whether a run of chunks is all fresh or all written; neither: mixed.
func (v *view) state(chunk, n int) (fresh, written bool) {
	if v.base == nil {
		return false, true
	}
	run := v.fresh[chunk : chunk+n]
	return !slices.Contains(run, false), !slices.Contains(run, true)
}

// source is where a run can be read.
func (v *view) source(a *assembly, chunk, n int) region {
	fresh, written := v.state(chunk, n)
	switch {
	case fresh:
		return v.base(chunk, n)
	case !written:
		v.settle(chunk, n, a.copy)
	}
	return v.place(chunk, n)
}

// target is where a run is written. opens says that a reduction takes what is
// there so far from left instead.
func (v *view) target(a *assembly, chunk, n int, reduce bool) (at, left region, opens bool) {
	at = v.place(chunk, n)
	fresh, written := v.state(chunk, n)
	switch {
	case written:
		return at, region{}, false
	case reduce && fresh:
		left, opens = v.base(chunk, n), true
	case reduce:
		v.settle(chunk, n, a.copy)
	}
	for c := chunk; c < chunk+n; c++ {
		v.fresh[c] = false
	}
	return at, left, opens
}

// settle moves the fresh chunks of a run to their place.
func (v *view) settle(chunk, n int, copied func(to, from region)) {
	if v.base == nil {
		return
	}
	for c := chunk; c < chunk+n; c++ {
		if !v.fresh[c] {
			continue
		}
		first := c
		for ; c < chunk+n && v.fresh[c]; c++ {
			v.fresh[c] = false
		}
		copied(v.place(first, c-first), v.base(first, c-first))
	}
}

// runs are the runs of its own chunks that a rank's moves read or write.
func (g *Group) runs(rounds []plan.Round, visit func(chunk, n int)) {
	for _, round := range rounds {
		for _, m := range round {
			if m.From == g.rank {
				visit(m.Src, m.N)
			}
			if m.To == g.rank {
				visit(m.Dst, m.N)
			}
		}
	}
}

// relays reports whether a rank's moves touch chunks outside [first, last), and
// straddles whether one of them touches such and others.
func (g *Group) relays(rounds []plan.Round, first, last int) (relays, straddles bool) {
	g.runs(rounds, func(chunk, n int) {
		inside := chunk >= first && chunk+n <= last
		outside := chunk+n <= first || chunk >= last
		relays = relays || !inside
		straddles = straddles || !inside && !outside
	})
	return relays, straddles
}

// subdivide cuts every part in k.
func subdivide(parts []int, k int) []int {
	bounds := []int{parts[0]}
	for i := range len(parts) - 1 {
		for _, b := range plan.Cut(parts[i+1]-parts[i], k)[1:] {
			bounds = append(bounds, parts[i]+b)
		}
	}
	return bounds
}

// checkBounds compares a vector's length with the end of its bounds.
func checkBounds(bounds []int, length int) error {
	if last := bounds[len(bounds)-1]; last != length {
		return fmt.Errorf("bounds up to %d of a vector of %d", last, length)
	}
	return nil
}
