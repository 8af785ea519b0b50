package plan

import (
	"iter"
	"slices"
)

// Hazard says that, in a round, a rank's chunks are sent and written: whoever
// executes the move must keep a copy of what it sends, because a received chunk
// may land there before the send has read it.
type Hazard struct {
	Round, Move int // the move that sends, both from 0
	Rank        int
}

// Hazards yields the moves that need a copy. Most plans have none.
func (p Plan) Hazards() iter.Seq[Hazard] {
	return func(yield func(Hazard) bool) {
		written := make([]int, p.Ranks*p.Chunks) // the round that wrote, from 1
		i := 0
		for round := range p.Rounds {
			for _, m := range round {
				for c := range m.N {
					written[m.To*p.Chunks+m.Dst+c] = i + 1
				}
			}
			for j, m := range round {
				read := written[m.From*p.Chunks+m.Src:][:m.N]
				if slices.Contains(read, i+1) && !yield(Hazard{Round: i, Move: j, Rank: m.From}) {
					return
				}
			}
			i++
		}
	}
}
