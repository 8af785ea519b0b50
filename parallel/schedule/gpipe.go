package schedule

// GPipe runs all micro-batches forward, then all backward in the same order
// (Huang et al. 2019). Stage r is on rank r. Idle share (p-1)/(m+p-1); every
// rank holds all m micro-batches.
func GPipe(ranks, micros int) Schedule {
	s := make(Schedule, ranks)
	for r := range s {
		for m := range micros {
			s[r] = append(s[r], Action{Kind: Forward, Stage: r, Micro: m})
		}
		for m := range micros {
			s[r] = append(s[r], Action{Kind: Backward, Stage: r, Micro: m})
		}
	}
	return WithArms(s, oneStageEach(ranks))
}
