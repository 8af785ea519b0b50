package schedule

import (
	"cmp"
	"slices"
)

// Forwards is the schedule of an evaluation: micros micro-batches pass all
// stages forward, and nothing is armed or waited for. owners has the rank of
// each stage, as Owners returns it for the schedule that the model is trained
// with. A rank runs its actions in the order of stage plus micro-batch, which is
// when each can run if all cost the same.
func Forwards(owners []int, micros int) Schedule {
	ranks := 0
	for _, rank := range owners {
		ranks = max(ranks, rank+1)
	}
	s := make(Schedule, ranks)
	for stage, rank := range owners {
		for m := range micros {
			s[rank] = append(s[rank], Action{Forward, stage, m})
		}
	}
	for _, list := range s {
		slices.SortFunc(list, func(a, b Action) int {
			return cmp.Or(cmp.Compare(a.Stage+a.Micro, b.Stage+b.Micro), cmp.Compare(a.Micro, b.Micro))
		})
	}
	return s
}
