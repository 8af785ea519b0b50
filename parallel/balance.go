package parallel

import "math"

// slowerForMemory is how much longer the slowest stage may take than it need, if
// that makes the largest one smaller.
const slowerForMemory = 1.05

// Balance cuts a model in stages so that the slowest one is as fast as possible
// and, among cuts that are within a twentieth of that, the stage that takes most
// memory takes as little as possible. held is how many micro-batches a stage
// holds at a time, by stage; nil means 1. More stages than blocks is a *CutError.
//
// Both are found exactly, by dynamic programming over the first blocks and
// stages: the best worst stage of k stages over n blocks is that of k-1 stages
// over some of the blocks, or the stage of the others.
func Balance(costs []BlockCost, stages int, held func(stage int) int) (*Pipeline, error) {
	p := &Pipeline{Costs: costs}
	if stages > len(costs) {
		return nil, p.fault("%d stages cannot be made of %d blocks: each has at least one", stages, len(costs))
	}
	times, memory := make([]float64, len(costs)+1), make([]float64, len(costs)+1)
	activations := make([]float64, len(costs)+1)
	for i, c := range costs {
		times[i+1] = times[i] + c.Forward + c.Backward
		memory[i+1] = memory[i] + float64(c.Parameters)
		activations[i+1] = activations[i] + float64(c.Activations)
	}
	time := func(_, lo, hi int) float64 { return times[hi] - times[lo] }
	fastest, cuts := partition(len(costs), stages, time)
	bytes := func(stage, lo, hi int) float64 {
		if time(stage, lo, hi) > fastest*slowerForMemory {
			return math.Inf(1)
		}
		micros := 1
		if held != nil {
			micros = held(stage)
		}
		// Weights, gradients, and about as much again for the optimizer; each
		// product rounded, so that all platforms cut alike.
		weights := float64(3 * (memory[hi] - memory[lo]))
		return weights + float64(float64(micros)*(activations[hi]-activations[lo]))
	}
	if least, better := partition(len(costs), stages, bytes); !math.IsInf(least, 1) && least > 0 {
		cuts = better
	}
	p.Cuts = cuts
	return p, nil
}

// partition cuts n blocks in stages so that the largest cost of a stage, a
// function of the blocks [lo, hi), is the smallest possible. Of equal ones the
// earlier cut is taken.
func partition(n, stages int, cost func(stage, lo, hi int) float64) (worst float64, cuts []int) {
	best := make([][]float64, stages) // by stage and end
	from := make([][]int, stages)
	for stage := range stages {
		best[stage], from[stage] = make([]float64, n+1), make([]int, n+1)
		for hi := range n + 1 {
			best[stage][hi] = math.Inf(1)
			if stage == 0 {
				if hi > 0 {
					best[0][hi] = cost(0, 0, hi)
				}
				continue
			}
			from[stage][hi] = hi - 1
			for lo := stage; lo < hi; lo++ {
				if c := max(best[stage-1][lo], cost(stage, lo, hi)); c < best[stage][hi] {
					best[stage][hi], from[stage][hi] = c, lo
				}
			}
		}
	}
	cuts = make([]int, stages-1)
	for stage, hi := stages-1, n; stage > 0; stage-- {
		hi = from[stage][hi]
		cuts[stage-1] = hi
	}
	return best[stages-1][n], cuts
}
