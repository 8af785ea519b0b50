package trainer

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// mostSteps is of how many steps, the newest, a prediction remembers the times.
const mostSteps = 1000

// The times that a prediction keeps of a stage, in the order of parallel.ActionTimes;
// the updates of a rank come behind those of all stages.
const timesOfStage = 4

// prediction collects what the actions of this rank's stages take, for what the
// schedule makes of that.
type prediction struct {
	steps  int
	series map[int][]float64 // milliseconds of each step, by what was timed
	now    []parallel.ActionTimes
}

// add adds a step, of a model in so many stages.
func (p *prediction) add(stages int, e *parallel.Executor, update float64) {
	if p.series == nil {
		p.series = map[int][]float64{}
	}
	p.now = e.ActionTimes(p.now[:0])
	for _, t := range p.now {
		for i, d := range []float64{milliseconds(int64(t.Forward)), milliseconds(int64(t.Backward)), milliseconds(int64(t.Input)), milliseconds(int64(t.Weight))} {
			p.put(t.Stage*timesOfStage+i, d)
		}
	}
	p.put(stages*timesOfStage, update)
	p.steps++
}

func (p *prediction) put(of int, v float64) {
	if list := p.series[of]; len(list) == mostSteps {
		list[p.steps%mostSteps] = v
		return
	}
	p.series[of] = append(p.series[of], v)
}

// median is that of the steps after the warm-up, or of all while there are no others.
func (p *prediction) median(of int) float64 {
	list := p.series[of]
	if len(list) > warmup && p.steps <= mostSteps {
		list = list[warmup:]
	}
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// predicted is what a step should take in milliseconds: what the simulation of the
// schedule makes of the stages' times in this run, those of the slowest column, and the
// slowest rank's update. A step takes longer by what ranks lose in waiting beyond what
// the schedule has, and in communication. It is nil for a model that is not cut, and
// collective.
func (s *session) predicted(ctx context.Context) (*float64, error) {
	if !s.isCut() {
		return nil, nil
	}
	stages := len(s.owners)
	times := make([]float64, stages*timesOfStage+1)
	for i := range times {
		times[i] = s.figures.prediction.median(i)
	}
	err := s.comm.Start(ctx, collective.Call{Kind: plan.AllReduce, Op: collective.Max, In: device.FromF64(times), Label: "times of the stages"}).Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("comparing the times of the stages: %w", err)
	}
	if s.figures.prediction.steps == 0 {
		return nil, nil
	}
	var costs schedule.Costs
	for stage := range stages {
		t := times[stage*timesOfStage:]
		costs.Stages = append(costs.Stages, schedule.StageCost{Forward: t[0], Whole: t[1], Input: t[2], Weight: t[3]})
	}
	list, err := s.scheduleOf(s.mostMicros())
	if err != nil {
		return nil, err
	}
	timing, err := list.Simulate(costs)
	if err != nil {
		return nil, err
	}
	span := timing.Span + times[len(times)-1]
	return &span, nil
}
