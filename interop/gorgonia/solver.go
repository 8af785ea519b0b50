package gorgonia

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// SolverConfig says how a Solver updates.
type SolverConfig struct {
	Optimizer optim.Config
	Schedule  optim.ScheduleConfig // Base is the learning rate
	ClipNorm  float64              // largest global norm of the gradients; 0 for any
}

// Solver is a gorgonia.Solver that updates with an optimizer of package optim.
// It takes float32 tensors that do not change their number, order or shape from
// step to step. Parameters with at least two dimensions above 1 count as
// weights, the others as biases, which do not decay unless the Config says so.
type Solver struct {
	dev       device.Device
	config    SolverConfig
	optimizer optim.Optimizer
	schedule  optim.Schedule
	norm      *optim.Norm
	segments  []optim.Segment
	step      int // completed
}

var _ G.Solver = (*Solver)(nil)

// NewSolver returns a Solver that computes on dev, whose kernels must read host
// memory. Settings out of range are an error.
func NewSolver(dev device.Device, c SolverConfig) (*Solver, error) {
	o, err := optim.New(c.Optimizer)
	if err != nil {
		return nil, err
	}
	s, err := optim.NewSchedule(c.Schedule)
	if err != nil {
		return nil, err
	}
	return &Solver{dev: dev, config: c, optimizer: o, schedule: s}, nil
}

// Step updates the values in place from their gradients and zeroes those, as
// Gorgonia's own solvers do. On an error nothing has been updated.
func (s *Solver) Step(model []G.ValueGrad) error {
	if s.segments != nil && len(model) != len(s.segments) {
		return fmt.Errorf("solver: %d values, the first step had %d", len(model), len(s.segments))
	}
	first := s.segments == nil
	segments := s.segments
	if first {
		segments = make([]optim.Segment, len(model))
	}
	for i, v := range model {
		if err := bind(&segments[i], v, i); err != nil {
			return fmt.Errorf("solver: %w", err)
		}
	}
	if first {
		if err := s.begin(segments); err != nil {
			return err
		}
	}
	scale := float32(1)
	if s.config.ClipNorm > 0 {
		norm, err := s.norm.Global(segments)
		if err != nil {
			return err
		}
		scale = optim.ClipScale(norm, s.config.ClipNorm)
	}
	if err := s.optimizer.Update(s.step+1, segments, s.schedule.LR(s.step), scale); err != nil {
		return err
	}
	for i := range segments {
		s.dev.Kernels().Fill(segments[i].Grad, 0)
	}
	s.step++
	return s.dev.Sync()
}

// State visits the optimizer's state, as optim.Optimizer has it; nothing before
// the first step. Segments carry the values' names, or param-0 and so on.
func (s *Solver) State(visit func(name string, seg optim.Segment, t device.Buf) error) error {
	return s.optimizer.State(visit)
}

func (s *Solver) begin(segments []optim.Segment) error {
	if err := s.optimizer.Init(s.dev, segments); err != nil {
		return err
	}
	norm, err := optim.NewNorm(s.dev, segments)
	if err != nil {
		return err
	}
	s.segments, s.norm = segments, norm
	return nil
}

// bind points a segment at where value and gradient are now.
func bind(seg *optim.Segment, v G.ValueGrad, index int) error {
	name := fmt.Sprintf("param-%d", index)
	if n, ok := v.(G.Namer); ok && n.Name() != "" {
		name = n.Name()
	}
	value, err := memory(v.Value())
	if err != nil {
		return fmt.Errorf("value of %s: %w", name, err)
	}
	g, err := v.Grad()
	if err != nil {
		return fmt.Errorf("gradient of %s: %w", name, err)
	}
	grad, err := memory(g)
	if err != nil {
		return fmt.Errorf("gradient of %s: %w", name, err)
	}
	if grad.Len != value.Len {
		return fmt.Errorf("gradient of %s has %d elements, its value %d", name, grad.Len, value.Len)
	}
	if seg.Param == nil {
		shape := append([]int(nil), v.Value().Shape()...)
		seg.Param = &nn.Param{Name: name, Shape: shape, Decay: isMatrix(shape)}
		seg.Hi = value.Len
	}
	if value.Len != seg.Hi {
		return fmt.Errorf("value of %s has %d elements, the first step had %d", name, value.Len, seg.Hi)
	}
	seg.Param.Value, seg.Grad = value, grad
	return nil
}

func isMatrix(shape []int) bool {
	large := 0
	for _, d := range shape {
		if d > 1 {
			large++
		}
	}
	return large >= 2
}
