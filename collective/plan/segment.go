package plan

import (
	"fmt"
	"slices"
)

// Segment pipelines a plan of kind k: every chunk is cut in n, and segment s
// runs the whole plan s rounds after the first.
//
//	round        0     1     2     3        a plan of 3 rounds in 2 segments:
//	segment 0    up    up    down           R + n-1 rounds, each of 1/n of the
//	segment 1          up    up    down     bytes
//
// It pays where ranks or links idle in some rounds, as in a tree, whose levels
// then all work at once (Träff and others, Pipelined binary trees).
func (p Plan) Segment(k Kind, n int) Plan {
	if n < 1 || k == AllToAll || k == Barrier {
		panic(fmt.Sprintf("plan: Segment of %v in %d", k, n))
	}
	if n == 1 {
		return p
	}
	parts := k.Parts() // a rank's run of chunks must stay its own
	return Plan{Ranks: p.Ranks, Chunks: p.Chunks * n, Rounds: func(yield func(Round) bool) {
		window := make([]Round, n) // of p's round r, at r mod n
		var out Round
		emit := func(at, last int) bool {
			out = out[:0]
			for s := range n {
				if r := at - s; r >= 0 && r <= last {
					out = appendSegment(out, window[r%n], parts, p.Chunks, n, s)
				}
			}
			return yield(out)
		}
		at := 0
		for round := range p.Rounds {
			window[at%n] = append(window[at%n][:0], round...)
			if !emit(at, at) {
				return
			}
			at++
		}
		for last := at - 1; last >= 0 && at <= last+n-1; at++ {
			if !emit(at, last) {
				return
			}
		}
	}}
}

// appendSegment appends segment s of n of a round. Segments of one chunk lie
// side by side where parts belong to ranks; elsewhere a segment's chunks do, so
// that a move of many chunks stays one.
func appendSegment(out, round Round, parts bool, chunks, n, s int) Round {
	for _, m := range round {
		if !parts {
			m.Src, m.Dst = m.Src+s*chunks, m.Dst+s*chunks
			out = append(out, m)
			continue
		}
		out = slices.Grow(out, m.N)
		for c := range m.N {
			cut := m
			cut.Src, cut.Dst, cut.N = (m.Src+c)*n+s, (m.Dst+c)*n+s, 1
			out = append(out, cut)
		}
	}
	return out
}
