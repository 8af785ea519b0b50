package schedule

import "slices"

// WithArms adds to a list of computations what a training step needs around
// them: Arm before the last action that completes gradients of a stage, and
// Wait at each rank's end. stages lists the stages of each rank; one without a
// micro-batch is armed at the end, later stages first. s is not changed.
func WithArms(s Schedule, stages [][]int) Schedule {
	out := make(Schedule, len(s))
	for rank, list := range s {
		last := map[int]int{}
		for i, a := range list {
			if a.completesGradient() {
				last[a.Stage] = i
			}
		}
		for i, a := range list {
			if at, ok := last[a.Stage]; ok && at == i {
				out[rank] = append(out[rank], Action{Kind: Arm, Stage: a.Stage})
			}
			out[rank] = append(out[rank], a)
		}
		idle := slices.DeleteFunc(slices.Clone(stages[rank]), func(stage int) bool {
			_, used := last[stage]
			return used
		})
		slices.Sort(idle)
		for _, stage := range slices.Backward(idle) {
			out[rank] = append(out[rank], Action{Kind: Arm, Stage: stage})
		}
		out[rank] = append(out[rank], Action{Kind: Wait})
	}
	return out
}

// oneStageEach is the placement of stage r on rank r.
func oneStageEach(ranks int) [][]int {
	out := make([][]int, ranks)
	for r := range out {
		out[r] = []int{r}
	}
	return out
}
