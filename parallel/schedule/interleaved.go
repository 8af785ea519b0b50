package schedule

// Interleaved gives rank r the stages r, r+ranks, r+2·ranks, ... (virtual of
// them) and runs 1F1B over them, so that a micro-batch passes the ranks virtual
// times and the pipeline fills and drains in a virtual-th of the time (Narayanan
// et al. 2021). Micro-batches go in groups: a rank runs one stage for a whole
// group, then its next stage. The paper's groups are of ranks micro-batches;
// here they are as equal as possible and no smaller, so that any number of
// micro-batches works.
//
// Idle share (p-1)/(v·m+p-1) for m >= p; rank r holds at most
// (v-1)·q + 2(p-1-r) + 1 of its stages' micro-batches, q being the size of the
// first and largest group.
func Interleaved(ranks, virtual, micros int) Schedule {
	s := make(Schedule, ranks)
	groups := max(micros/ranks, 1)
	largest := (micros + groups - 1) / groups // the first one
	for r := range s {
		var forward, backward []Action
		for g := range groups {
			lo, hi := micros-(groups-g)*micros/groups, micros-(groups-g-1)*micros/groups
			for v := range virtual {
				for m := lo; m < hi; m++ {
					forward = append(forward, Action{Forward, r + v*ranks, m})
					backward = append(backward, Action{Backward, r + (virtual-1-v)*ranks, m})
				}
			}
		}
		warmup := min((virtual-1)*largest+2*(ranks-1-r), len(forward))
		s[r] = append(s[r], forward[:warmup]...)
		for i, b := range backward {
			if i+warmup < len(forward) {
				s[r] = append(s[r], forward[i+warmup])
			}
			s[r] = append(s[r], b)
		}
	}
	return WithArms(s, loopedStages(ranks, virtual))
}

// loopedStages is the placement of stage s on rank s modulo ranks.
func loopedStages(ranks, virtual int) [][]int {
	out := make([][]int, ranks)
	for stage := range ranks * virtual {
		out[stage%ranks] = append(out[stage%ranks], stage)
	}
	return out
}
