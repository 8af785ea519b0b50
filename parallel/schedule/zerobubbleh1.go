package schedule

// ZeroBubbleH1 is 1F1B with backward passes cut in their two halves: the half
// that the previous stage waits for runs at once, and rank r puts the other half
// off by r micro-batches, to where it would be idle (Qi et al. 2024). Stage r is
// on rank r. With equal costs F = I = W and m >= p the idle time is p-1 of them,
// a third of 1F1B's; every rank holds up to min(m, p) micro-batches.
func ZeroBubbleH1(ranks, micros int) Schedule {
	s := make(Schedule, ranks)
	for r := range s {
		warmup := min(micros, ranks-1-r)
		for m := range warmup {
			s[r] = append(s[r], Action{Forward, r, m})
		}
		for m := range micros {
			if m+warmup < micros {
				s[r] = append(s[r], Action{Forward, r, m + warmup})
			}
			if r == 0 { // nobody waits for half of it
				s[r] = append(s[r], Action{Backward, r, m})
				continue
			}
			s[r] = append(s[r], Action{Input, r, m})
			if m >= r {
				s[r] = append(s[r], Action{Weight, r, m - r})
			}
		}
		for m := max(micros-r, 0); m < micros; m++ { // none for r = 0
			s[r] = append(s[r], Action{Weight, r, m})
		}
	}
	return WithArms(s, oneStageEach(ranks))
}
