package metrics

import (
	"cmp"
	"slices"

	"github.com/gradfusion/gradfusion/observe"
)

// Times says where the time of a step went, in milliseconds.
type Times struct {
	Step      float64 // the whole step
	Forward   float64 // union of the forward spans; so for the next two and Data
	Backward  float64
	Optimizer float64
	Comm      float64 // sum of the calls' own running times, from their last peer's arrival
	Exposed   float64 // union of the times in which the step waits for calls and computes nothing
	Bubble    float64 // union of the times in which a stage waits for what another has not computed yet
	Wait      float64 // sum of the times from a call's start until its last peer arrived
	Data      float64 // waiting for the next batch
}

func (t *Times) add(o Times) {
	t.Step += o.Step
	t.Forward += o.Forward
	t.Backward += o.Backward
	t.Optimizer += o.Optimizer
	t.Comm += o.Comm
	t.Exposed += o.Exposed
	t.Bubble += o.Bubble
	t.Wait += o.Wait
	t.Data += o.Data
}

func (t Times) over(n float64) Times {
	return Times{t.Step / n, t.Forward / n, t.Backward / n, t.Optimizer / n, t.Comm / n, t.Exposed / n, t.Bubble / n, t.Wait / n, t.Data / n}
}

// StepTimes accumulates the spans of one rank, step by step. The zero value
// counts every step; Warmup steps at the start are left out of means and
// percentiles as long as later ones exist. Not for concurrent use. Adding a
// step allocates nothing once it has seen a few (but for the amortised growth
// of the list of step times).
type StepTimes struct {
	Warmup int

	unions   [5][]interval // forward, backward, optimizer, data, bubble
	exposed  []interval
	current  Times
	warm     Times // sum over the warm-up steps
	rest     Times // sum over the others
	steps    []float64
	sent     int64
	received int64
	saved    int64
}

type interval struct{ start, end int64 }

// Add takes one span of the current step. Kinds that are no part of the
// figures are ignored. Nested and overlapping spans of a kind count once,
// except for calls, whose own times add up.
func (s *StepTimes) Add(span observe.Span) {
	in := interval{span.Start, span.End}
	switch span.Kind {
	case observe.Step:
		s.current.Step += milliseconds(span.End - span.Start)
	case observe.Forward:
		s.unions[0] = append(s.unions[0], in)
	case observe.Backward:
		s.unions[1] = append(s.unions[1], in)
	case observe.Optimizer:
		s.unions[2] = append(s.unions[2], in)
	case observe.Data:
		s.unions[3] = append(s.unions[3], in)
	case observe.Bubble:
		s.unions[4] = append(s.unions[4], in)
	case observe.Exposed:
		s.exposed = append(s.exposed, in)
	case observe.Call:
		s.current.Comm += milliseconds(span.End - span.Start)
		s.sent += span.Bytes
		s.received += span.BytesIn
		s.saved += span.Saved
	case observe.CallWait:
		s.current.Wait += milliseconds(span.End - span.Start)
	}
}

// EndStep closes the current step and returns its times.
func (s *StepTimes) EndStep() Times {
	t := s.current
	t.Forward, t.Backward = union(s.unions[0]), union(s.unions[1])
	t.Optimizer, t.Data, t.Bubble = union(s.unions[2]), union(s.unions[3]), union(s.unions[4])
	t.Exposed = union(s.exposed)
	for i := range s.unions {
		s.unions[i] = s.unions[i][:0]
	}
	s.exposed, s.current = s.exposed[:0], Times{}
	if len(s.steps) < s.Warmup {
		s.warm.add(t)
	} else {
		s.rest.add(t)
	}
	s.steps = append(s.steps, t.Step)
	return t
}

// union returns the time that the intervals cover; it sorts them.
func union(list []interval) float64 {
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	var total, end int64
	for i, v := range list {
		if i == 0 || v.start > end {
			end = v.start
		}
		if v.end > end {
			total += v.end - end
			end = v.end
		}
	}
	return milliseconds(total)
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }

// Steps returns how many steps were closed.
func (s *StepTimes) Steps() int { return len(s.steps) }

// Bytes returns what the calls of all steps sent and received.
func (s *StepTimes) Bytes() (sent, received int64) { return s.sent, s.received }

// Saved returns what packing kept from being sent, of what the calls sent.
func (s *StepTimes) Saved() int64 { return s.saved }

// measured returns the steps that count: those after the warm-up, or all when
// there are no others.
func (s *StepTimes) measured() (steps []float64, sum Times) {
	if len(s.steps) <= s.Warmup {
		return s.steps, s.warm
	}
	return s.steps[max(s.Warmup, 0):], s.rest
}

// Means returns the means per step after warm-up; zeros before the first step.
func (s *StepTimes) Means() Times {
	steps, sum := s.measured()
	if len(steps) == 0 {
		return Times{}
	}
	return sum.over(float64(len(steps)))
}

// StepPercentile returns the step time that p percent of the steps after
// warm-up do not exceed (nearest rank: always one of the measured times).
func (s *StepTimes) StepPercentile(p int) float64 {
	steps, _ := s.measured()
	if len(steps) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(steps))
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// Overlap returns 100 x (1 - exposed / (comm + wait)) after warm-up: how much
// of the communication was hidden behind computation. It is negative when the
// step waits longer than calls run, and nil where nothing was sent.
func (s *StepTimes) Overlap() *float64 {
	_, sum := s.measured()
	if s.sent+s.received == 0 || sum.Comm+sum.Wait == 0 {
		return nil
	}
	v := 100 * (1 - sum.Exposed/(sum.Comm+sum.Wait))
	return &v
}
