package parallel

import (
	"math"
	"slices"
)

// slowerForMemory is how much longer the slowest rank may take than it need, if
// that makes the largest one smaller.
const slowerForMemory = 1.05

// Balance cuts a model in stages so that the slowest rank is as fast as possible
// and, among cuts that are within a twentieth of that, the rank that takes most
// memory takes as little as possible. loads has an element for each stage. More
// stages than blocks is a *CutError.
//
// Where each rank has one stage, both are found exactly, by dynamic programming
// over the first blocks and stages: the best worst stage of k stages over n blocks
// is that of k-1 stages over some of the blocks, or the stage of the others. Where
// ranks have several, what counts is their sum, and cuts are moved, up to three at
// a time, until that makes nothing better; of more than 64 blocks one cut to any
// place and the others by a few blocks, because all ways are too many.
func Balance(costs []BlockCost, loads []StageLoad) (*Pipeline, error) {
	p := &Pipeline{Costs: costs, Loads: loads}
	n, stages := len(costs), len(loads)
	if stages > n {
		return nil, p.fault("%d stages cannot be made of %d blocks: each has at least one", stages, n)
	}
	plain, again := newPrefixes(costs, false), newPrefixes(costs, true)
	of := func(stage int) *prefixes {
		if loads[stage].Recompute {
			return again
		}
		return plain
	}
	time := func(stage, lo, hi int) float64 { x := of(stage); return x.times[hi] - x.times[lo] }
	memory := func(stage, lo, hi int) float64 {
		x, micros := of(stage), float64(max(loads[stage].Held, 1))
		// Weights, gradients, and about as much again for the optimizer; each
		// product rounded, so that all platforms cut alike.
		weights := float64(3 * (x.parameters[hi] - x.parameters[lo]))
		return weights + float64(micros*(x.activations[hi]-x.activations[lo]))
	}
	fastest, cuts := partition(n, stages, time)
	b := balancing{blocks: n, loads: loads}
	if b.several() {
		cuts = b.improve(cuts, func(cuts []int) (float64, float64) { return b.sums(cuts, time) })
		fastest, _ = b.sums(cuts, time)
		p.Cuts = b.improve(cuts, func(cuts []int) (float64, float64) {
			if slowest, _ := b.sums(cuts, time); slowest > fastest*slowerForMemory {
				return math.Inf(1), math.Inf(1)
			}
			return b.sums(cuts, memory)
		})
		return p, nil
	}
	bytes := func(stage, lo, hi int) float64 {
		if time(stage, lo, hi) > fastest*slowerForMemory {
			return math.Inf(1)
		}
		return memory(stage, lo, hi)
	}
	if least, better := partition(n, stages, bytes); !math.IsInf(least, 1) && least > 0 {
		cuts = better
	}
	p.Cuts = cuts
	return p, nil
}

// prefixes has what the first blocks cost, by how many there are.
type prefixes struct{ times, parameters, activations []float64 }

func newPrefixes(costs []BlockCost, recompute bool) *prefixes {
	n := len(costs) + 1
	x := &prefixes{make([]float64, n), make([]float64, n), make([]float64, n)}
	for i, c := range costs {
		if recompute {
			c = c.recomputed()
		}
		x.times[i+1] = x.times[i] + c.Forward + c.Backward
		x.parameters[i+1] = x.parameters[i] + float64(c.Parameters)
		x.activations[i+1] = x.activations[i] + float64(c.Activations)
	}
	return x
}

// balancing moves cuts where a rank may have several stages.
type balancing struct {
	blocks int
	loads  []StageLoad
	byRank []float64 // of sums
}

// farAlone is from how many blocks on only one cut at a time is moved farther than
// near.
const (
	farAlone = 64
	near     = 4
)

func (b *balancing) several() bool {
	seen := map[int]bool{}
	for _, l := range b.loads {
		if seen[l.Rank] {
			return true
		}
		seen[l.Rank] = true
	}
	return false
}

// sums adds a cost up by ranks, and returns the largest sum and that of their
// squares, which gets smaller when sums get more alike.
func (b *balancing) sums(cuts []int, cost func(stage, lo, hi int) float64) (worst, squares float64) {
	sums := b.byRank[:0]
	lo := 0
	for stage, l := range b.loads {
		hi := b.blocks
		if stage < len(cuts) {
			hi = cuts[stage]
		}
		for len(sums) <= l.Rank {
			sums = append(sums, 0)
		}
		sums[l.Rank] += cost(stage, lo, hi)
		lo = hi
	}
	b.byRank = sums
	for _, s := range sums {
		worst, squares = max(worst, s), squares+float64(s*s)
	}
	return worst, squares
}

// improve moves up to three cuts at a time to the places where score is smallest, again and
// again while it gets smaller.
func (b *balancing) improve(cuts []int, score func(cuts []int) (float64, float64)) []int {
	together := 3
	if len(cuts) > 8 { // too many ways
		together = 2
	}
	best := slices.Clone(cuts)
	worst, squares := score(best)
	for better := true; better; {
		better = false
		now := slices.Clone(best)
		b.moves(slices.Clone(best), together, 0, b.blocks, func(cuts []int) {
			if !ascending(cuts) {
				return
			}
			if w, s := score(cuts); w < worst || w == worst && s < squares {
				worst, squares, better = w, s, true
				copy(now, cuts)
			}
		})
		copy(best, now)
	}
	return best
}

func ascending(cuts []int) bool {
	for i := 1; i < len(cuts); i++ {
		if cuts[i] <= cuts[i-1] {
			return false
		}
	}
	return true
}

// moves calls visit with all ways to move up to count of cuts[from:] by up to reach
// that leave every stage a block, and some that do not.
func (b *balancing) moves(cuts []int, count, from, reach int, visit func(cuts []int)) {
	further := reach
	if b.blocks > farAlone {
		further = near
	}
	for i := from; i < len(cuts); i++ {
		was, low, high := cuts[i], 1, b.blocks
		if i > 0 {
			low = cuts[i-1] + 1
		}
		if next := i + count; next < len(cuts) { // those between may move too
			high = cuts[next]
		}
		low = max(low, was-reach)
		high = min(high, max(was, low)+reach+1)
		for cuts[i] = low; cuts[i] < high; cuts[i]++ {
			visit(cuts)
			if count > 1 {
				b.moves(cuts, count-1, i+1, further, visit)
			}
		}
		cuts[i] = was
	}
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
			if stage == stages-1 && hi < n { // nobody goes on from there
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
