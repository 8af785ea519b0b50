package schedule

import "slices"

// First is s for its first micros micro-batches alone: the actions of the others
// are left out, and stages are armed anew. It is how a list that was written for
// a number of micro-batches runs a shorter step; a list that Check accepts for
// more is right for fewer. s is not changed.
func (s Schedule) First(micros int) Schedule {
	out := make(Schedule, len(s))
	for rank, list := range s {
		out[rank] = slices.DeleteFunc(slices.Clone(list), func(a Action) bool {
			return a.Kind > Weight || a.Micro >= micros
		})
	}
	return WithArms(out, s.Stages())
}

// Micros returns how many micro-batches s runs: one more than the largest index.
func (s Schedule) Micros() int {
	n := 0
	for _, list := range s {
		for _, a := range list {
			if a.Kind != Arm && a.Kind != Wait {
				n = max(n, a.Micro+1)
			}
		}
	}
	return n
}
