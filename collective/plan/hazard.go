package plan

import "iter"

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
		written := map[[2]int]bool{}
		i := 0
		for round := range p.Rounds {
			clear(written)
			for _, m := range round {
				for c := range m.N {
					written[[2]int{m.To, m.Dst + c}] = true
				}
			}
			for j, m := range round {
				if m.reads(written) && !yield(Hazard{Round: i, Move: j, Rank: m.From}) {
					return
				}
			}
			i++
		}
	}
}

func (m Move) reads(written map[[2]int]bool) bool {
	for c := range m.N {
		if written[[2]int{m.From, m.Src + c}] {
			return true
		}
	}
	return false
}
