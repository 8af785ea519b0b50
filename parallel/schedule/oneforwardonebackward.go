package schedule

// OneForwardOneBackward (1F1B) warms rank r of p up with p-1-r forwards, then
// alternates one forward and one backward (Narayanan et al. 2021, the flushing
// variant). Stage r is on rank r. Idle share (p-1)/(m+p-1) as for GPipe; rank r
// holds at most min(m, p-r) micro-batches.
func OneForwardOneBackward(ranks, micros int) Schedule {
	s := make(Schedule, ranks)
	for r := range s {
		warmup := min(micros, ranks-1-r)
		for m := range warmup {
			s[r] = append(s[r], Action{Kind: Forward, Stage: r, Micro: m})
		}
		for m := range micros {
			if m+warmup < micros {
				s[r] = append(s[r], Action{Kind: Forward, Stage: r, Micro: m + warmup})
			}
			s[r] = append(s[r], Action{Kind: Backward, Stage: r, Micro: m})
		}
	}
	return WithArms(s, oneStageEach(ranks))
}
