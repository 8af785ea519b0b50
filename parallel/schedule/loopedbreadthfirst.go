package schedule

// LoopedBreadthFirst gives rank r the stages r, r+ranks, r+2·ranks, ... (virtual
// of them) and runs all micro-batches through one stage before the next, forward
// and then backward (Lamy-Poirier 2023). Gradients of a stage are complete long
// before the step's end, so their sums hide behind the stages before it. Idle
// share (p-1)/(v·m+p-1) for m >= p; every rank holds all m micro-batches of all
// its stages.
func LoopedBreadthFirst(ranks, virtual, micros int) Schedule {
	s := make(Schedule, ranks)
	for r := range s {
		for v := range virtual {
			for m := range micros {
				s[r] = append(s[r], Action{Forward, r + v*ranks, m})
			}
		}
		for v := range virtual {
			for m := range micros {
				s[r] = append(s[r], Action{Backward, r + (virtual-1-v)*ranks, m})
			}
		}
	}
	return WithArms(s, loopedStages(ranks, virtual))
}
