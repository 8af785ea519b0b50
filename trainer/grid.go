package trainer

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// grid is this rank's part of the model.
type grid struct {
	pipeline *parallel.Pipeline // nil where the model is not cut
	owners   []int              // by stage: its place in the column
	written  schedule.Schedule  // that a file has; nil: one by name
	stages   []parallel.Stage   // of this rank
	blocks   []nn.Block         // of these
	// later are the tied parameters of this rank of which an earlier stage holds
	// the copy that counts.
	later map[string]bool
}

// isCut reports whether the model is cut in stages, which divide does.
func (s *session) isCut() bool { return s.pipeline != nil }

// divide decides which blocks this rank has. It is collective if the model is
// cut.
func (s *session) divide(ctx context.Context) error {
	if s.mesh.Pipeline == 1 {
		s.owners, s.blocks = []int{0}, s.model.Blocks
		s.stages = []parallel.Stage{{Blocks: s.blocks, Comm: s.mesh.Replicas}}
		return nil
	}
	if err := s.plan(ctx); err != nil {
		return err
	}
	for stage, place := range s.owners {
		if place != s.mesh.At.Pipeline {
			continue
		}
		model := s.model
		if len(s.stages) > 0 && s.job.Model == nil {
			// Stages of one rank share no parameter: each has a copy.
			var err error
			if model, err = s.newModel(); err != nil {
				return err
			}
		}
		lo, hi := s.pipeline.Blocks(stage)
		blocks := model.Blocks[lo:hi]
		s.stages = append(s.stages, parallel.Stage{Blocks: blocks, Comm: s.mesh.Replicas, Index: stage, Recompute: s.pipeline.Loads[stage].Recompute})
		s.blocks = append(s.blocks, blocks...)
	}
	return s.tie(ctx)
}

// plan cuts the model and places the stages.
func (s *session) plan(ctx context.Context) (err error) {
	c := s.cfg.Parallel
	if config.IsFile(c.Schedule) {
		text, err := s.fromFirst(ctx, func() ([]byte, error) { return readFile(s.cfg, "parallel.schedule", c.Schedule) }, "schedule")
		if err != nil {
			return err
		}
		if s.written, err = readSchedule(s.cfg, text); err != nil {
			return err
		}
	}
	first, err := s.scheduleOf(s.mostMicros())
	if err != nil {
		return err
	}
	s.owners = first.Owners()
	costs, err := s.blockCosts(ctx)
	if err != nil {
		return err
	}
	if s.pipeline, err = cutModel(s.cfg, costs, first); err == nil && s.job.Cut != nil {
		s.job.Cut(s.largestMessage())
	}
	return err
}

// largestMessage is the most bytes that a stage gives to the next one of a micro-batch.
func (s *session) largestMessage() (most int) {
	for _, cut := range s.pipeline.Cuts {
		most = max(most, s.pipeline.Costs[cut-1].Output/4*s.activationWire().Size())
	}
	return most
}

func (s *session) mostMicros() int { return mostMicros(s.cfg, s.micro, s.mesh.Data) }

// scheduleOf returns the column's schedule for a run of micro-batches.
func (s *session) scheduleOf(micros int) (schedule.Schedule, error) {
	if s.mesh.Pipeline == 1 {
		return schedule.OneStage(micros), nil
	}
	return scheduleFor(s.cfg, s.written, s.mesh.Pipeline, micros)
}

// tie joins the ranks of each column that hold copies of one parameter.
func (s *session) tie(ctx context.Context) error {
	holders := map[string][]int{} // stages by parameter
	var names []string
	for stage := range s.owners {
		lo, hi := s.pipeline.Blocks(stage)
		for _, p := range nn.Params(s.model.Blocks[lo:hi]) {
			if holders[p.Name] = append(holders[p.Name], stage); len(holders[p.Name]) == 2 {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	s.later = map[string]bool{}
	comms := map[string]collective.Comm{}
	for _, name := range names {
		var places []int
		for _, stage := range holders[name] {
			if place := s.owners[stage]; !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
		s.later[name] = places[0] != s.mesh.At.Pipeline
		key := fmt.Sprint(places)
		if _, made := comms[key]; !made && len(places) > 1 {
			comm, err := s.mesh.SubColumn(ctx, places)
			if err != nil {
				return err
			}
			comms[key] = comm
		}
		for i := range s.stages {
			if slices.Contains(holders[name], s.stages[i].Index) && comms[key] != nil {
				if s.stages[i].Tied == nil {
					s.stages[i].Tied = map[string]collective.Comm{}
				}
				s.stages[i].Tied[name] = comms[key]
			}
		}
	}
	return nil
}

// fromFirst gives all ranks what read returns on rank 0.
func (s *session) fromFirst(ctx context.Context, read func() ([]byte, error), label string) ([]byte, error) {
	if s.comm.Size() == 1 {
		return read()
	}
	var own []byte
	var failed error
	length := []int64{0}
	if s.comm.Rank() == 0 {
		own, failed = read()
		if length[0] = int64(len(own)); failed != nil {
			length[0] = -1
		}
	}
	if err := collective.Broadcast(ctx, s.comm, 0, device.FromI64(length)); err != nil {
		return nil, fmt.Errorf("taking the %s from rank 0: %w", label, err)
	}
	switch {
	case failed != nil:
		return nil, failed
	case length[0] < 0:
		return nil, fmt.Errorf("rank 0 has no %s: %w", label, ErrElsewhere)
	case s.comm.Rank() != 0:
		own = make([]byte, length[0])
	}
	if length[0] == 0 {
		return own, nil
	}
	if err := collective.Broadcast(ctx, s.comm, 0, device.FromU8(own)); err != nil {
		return nil, fmt.Errorf("taking the %s from rank 0: %w", label, err)
	}
	return own, nil
}
