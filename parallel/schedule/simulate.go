package schedule

import (
	"fmt"
	"slices"
)

// Costs are the times that Simulate counts with, in any one unit.
type Costs struct {
	// Stages has the costs of each stage; the last entry holds for the stages
	// beyond it, and without an entry Forward, Input and Weight cost 1 each.
	Stages []StageCost
	// Hop is the time from the end of an action until a neighbouring stage on
	// another rank may use its result.
	Hop float64
}

// StageCost is the time of each action of a stage. Backward costs Input plus Weight
// unless Whole says what; Arm and Wait cost nothing.
type StageCost struct{ Forward, Input, Weight, Whole float64 }

func (c Costs) of(a Action) float64 {
	cost := StageCost{Forward: 1, Input: 1, Weight: 1}
	if n := len(c.Stages); n > 0 {
		cost = c.Stages[min(max(a.Stage, 0), n-1)]
	}
	switch a.Kind {
	case Forward:
		return cost.Forward
	case Backward:
		if cost.Whole > 0 {
			return cost.Whole
		}
		return cost.Input + cost.Weight
	case Input:
		return cost.Input
	case Weight:
		return cost.Weight
	}
	return 0
}

// Timing is what Simulate finds.
type Timing struct {
	Span  float64 // from the first action's start to the last one's end
	Ranks []RankTiming
}

// RankTiming is one rank's part of a Timing.
type RankTiming struct {
	Busy     float64
	Idle     float64   // Span - Busy
	PeakHeld int       // most micro-batches whose activations are held at one time, over the rank's stages
	Starts   []float64 // when each action starts
	Ends     []float64
}

// IdleShare returns the share of all ranks' time in which they compute nothing.
func (t Timing) IdleShare() float64 {
	idle := 0.0
	for _, r := range t.Ranks {
		idle += r.Idle
	}
	if t.Span == 0 {
		return 0
	}
	return idle / (t.Span * float64(len(t.Ranks)))
}

// Simulate runs a list of computations in model time: a rank runs its actions
// in order, each as soon as what it depends on is there. A forward depends on
// the stage before, a backward or input half on the stage behind and on its own
// forward, a weight half on its input half. A schedule in which ranks wait for
// each other, or for what nobody computes, is an *Error.
func (s Schedule) Simulate(costs Costs) (Timing, error) {
	r, err := newRun(s, costs)
	if err != nil {
		return Timing{}, err
	}
	ready := make([]int, len(s))
	for rank := range s {
		ready[rank] = rank
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = r.advance(rank, ready[:len(ready)-1])
	}
	for rank, list := range s {
		if next := r.next[rank]; next < len(list) {
			return Timing{}, s.fault(Position{rank, next}, "%s waits for %s", list[next], r.why(rank))
		}
	}
	return r.timing(), nil
}

// run is a simulation under way.
type run struct {
	s        Schedule
	costs    Costs
	last     int // the last stage
	where    *places
	waiting  [][]waiter // by the rank that is waited for
	next     []int
	clock    []float64
	held     []int
	out      []RankTiming
	finished float64
}

// waiter is a rank that goes on when the action of that index is done.
type waiter struct{ index, rank int }

// product is what others wait for: an input's gradient, whichever action made it.
func product(a Action) Action {
	if a.Kind == Backward {
		a.Kind = Input
	}
	return a
}

func newRun(s Schedule, costs Costs) (*run, error) {
	r := &run{
		s: s, costs: costs, where: newPlaces(s), waiting: make([][]waiter, len(s)),
		next: make([]int, len(s)), clock: make([]float64, len(s)), held: make([]int, len(s)),
		out: make([]RankTiming, len(s)),
	}
	for rank, list := range s {
		r.out[rank].Starts = make([]float64, 0, len(list))
		r.out[rank].Ends = make([]float64, 0, len(list))
		for i, a := range list {
			if a.Kind >= SendForward {
				return nil, s.fault(Position{rank, i}, "%s: sends and receives follow from the computations and are not simulated", a)
			}
			r.where.put(a, Position{rank, i})
			r.last = max(r.last, a.Stage)
		}
	}
	return r, nil
}

// advance runs a rank as far as it gets and returns ready with the ranks that
// may go on because of it.
func (r *run) advance(rank int, ready []int) []int {
	list := r.s[rank]
	for r.next[rank] < len(list) {
		a := list[r.next[rank]]
		start := r.clock[rank]
		needs, n := r.needs(a)
		for _, need := range needs[:n] {
			at, ok := r.where.ofProduct(need)
			if !ok {
				return ready
			}
			if r.next[at.Rank] <= at.Index {
				r.waiting[at.Rank] = append(r.waiting[at.Rank], waiter{at.Index, rank})
				return ready
			}
			if at.Rank != rank {
				start = max(start, r.out[at.Rank].Ends[at.Index]+r.costs.Hop)
			}
		}
		cost := r.costs.of(a)
		r.clock[rank] = start + cost
		r.record(rank, a, start, cost)
		r.waiting[rank] = slices.DeleteFunc(r.waiting[rank], func(w waiter) bool {
			if w.index == r.next[rank] {
				ready = append(ready, w.rank)
			}
			return w.index == r.next[rank]
		})
		r.next[rank]++
	}
	return ready
}

func (r *run) record(rank int, a Action, start, cost float64) {
	out := &r.out[rank]
	out.Busy += cost
	out.Starts = append(out.Starts, start)
	out.Ends = append(out.Ends, start+cost)
	switch {
	case a.Kind == Forward:
		r.held[rank]++
		out.PeakHeld = max(out.PeakHeld, r.held[rank])
	case a.completesGradient():
		r.held[rank]--
	}
	r.finished = max(r.finished, start+cost)
}

// needs lists the products that a depends on.
func (r *run) needs(a Action) (list [2]Action, n int) {
	switch a.Kind {
	case Forward:
		if a.Stage > 0 {
			return [2]Action{{Forward, a.Stage - 1, a.Micro}}, 1
		}
	case Backward, Input:
		list[0] = Action{Forward, a.Stage, a.Micro}
		if a.Stage == r.last {
			return list, 1
		}
		list[1] = Action{Input, a.Stage + 1, a.Micro}
		return list, 2
	case Weight:
		return [2]Action{{Input, a.Stage, a.Micro}}, 1
	}
	return list, 0
}

// why says what the next action of a rank that is stuck waits for.
func (r *run) why(rank int) string {
	needs, n := r.needs(r.s[rank][r.next[rank]])
	for _, need := range needs[:n] {
		at, ok := r.where.ofProduct(need)
		switch {
		case !ok:
			return fmt.Sprintf("%s, which no rank runs", need)
		case r.next[at.Rank] == at.Index:
			return fmt.Sprintf("%s of rank %d", r.s[at.Rank][at.Index], at.Rank)
		case r.next[at.Rank] < at.Index:
			return fmt.Sprintf("%s of rank %d, which is held up at %s", r.s[at.Rank][at.Index], at.Rank, r.s[at.Rank][r.next[at.Rank]])
		}
	}
	return "nothing"
}

func (r *run) timing() Timing {
	for i := range r.out {
		r.out[i].Idle = r.finished - r.out[i].Busy
	}
	return Timing{Span: r.finished, Ranks: r.out}
}
