package gorgonia

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
)

// Optimizer puts a Gorgonia solver where GradFusion wants an optim.Optimizer.
// The solver's own settings hold for all parameters alike; its learning rate is
// set before each step. It updates whole parameters only, so it does not go
// with a sharded optimizer. Gorgonia keeps a solver's moments to itself: State
// is an error for every solver that has some, so a run with it cannot be saved
// and resumed. It allocates in every step.
type Optimizer struct {
	solver   G.Solver
	setRate  func(lr float64)
	dev      device.Device
	segments []optim.Segment // of the step in progress
	model    []G.ValueGrad
	stepped  bool
}

var _ optim.Optimizer = (*Optimizer)(nil)

// RateSetter is what a solver of one's own has, so that schedules reach it.
type RateSetter interface{ SetLearnRate(lr float64) }

// NewOptimizer wraps solver, which the caller no longer uses. Solvers that
// cannot work here are refused, each with its reason.
func NewOptimizer(solver G.Solver) (*Optimizer, error) {
	o := &Optimizer{solver: solver, setRate: func(lr float64) { G.WithLearnRate(lr)(solver) }}
	switch s := solver.(type) {
	case nil:
		return nil, fmt.Errorf("gorgonia: no solver")
	case *G.VanillaSolver, *G.Momentum, *G.AdamSolver, *G.RMSPropSolver:
	case *G.AdamW:
		return nil, fmt.Errorf("gorgonia: AdamW takes nodes of Gorgonia's graphs only and would panic: use optim.Config{Name: \"adamw\"}")
	case *G.AdaGradSolver:
		return nil, fmt.Errorf("gorgonia: AdaGradSolver ignores the learning rate that it is given, so no schedule can reach it: use AdamSolver or RMSPropSolver")
	case *G.BarzilaiBorweinSolver:
		return nil, fmt.Errorf("gorgonia: BarzilaiBorweinSolver computes its own learning rate, so no schedule can reach it: use VanillaSolver or Momentum")
	case RateSetter:
		o.setRate = s.SetLearnRate
	default:
		return nil, fmt.Errorf("gorgonia: %T has no method SetLearnRate(float64), so no schedule can reach it", solver)
	}
	return o, nil
}

// Init takes the segments, which must be whole parameters. After the first
// Update it is an error, because the solver's moments cannot be moved.
func (o *Optimizer) Init(dev device.Device, segments []optim.Segment) error {
	if o.stepped {
		return fmt.Errorf("gorgonia: %T has run already and its moments cannot be moved to other segments", o.solver)
	}
	o.dev = dev
	o.segments = append(o.segments[:0], segments...)
	o.model = o.model[:0]
	for i, s := range segments {
		if s.Lo != 0 || s.Hi != s.Param.Len() {
			return fmt.Errorf("gorgonia: %T updates whole parameters, but %s is cut to [%d, %d): do not shard the optimizer", o.solver, s.Param.Name, s.Lo, s.Hi)
		}
		o.model = append(o.model, &valueGrad{
			param:    s.Param,
			gradient: func() (device.Buf, bool) { return o.segments[i].Grad, true },
		})
	}
	return nil
}

// Update scales the gradients, which it uses up, and runs the solver.
func (o *Optimizer) Update(step int, segments []optim.Segment, lr, scale float32) (err error) {
	if len(segments) != len(o.segments) {
		panic(fmt.Sprintf("gorgonia: Update with %d segments, Init had %d", len(segments), len(o.segments)))
	}
	copy(o.segments, segments)
	if err := o.checkFrozen(); err != nil {
		return err
	}
	if scale != 1 {
		for i := range segments {
			o.dev.Kernels().Scale(segments[i].Grad, segments[i].Grad, scale)
		}
	}
	if err := o.dev.Sync(); err != nil {
		return err
	}
	o.stepped = true
	o.setRate(float64(lr))
	defer func() {
		// Gorgonia panics where others return an error.
		if r := recover(); r != nil {
			err = fmt.Errorf("gorgonia: %T, step %d: %v", o.solver, step, r)
		}
	}()
	if err := o.solver.Step(o.model); err != nil {
		return fmt.Errorf("gorgonia: %T, step %d: %w", o.solver, step, err)
	}
	return nil
}

// checkFrozen refuses parameters that were frozen after Init: a solver with
// moments moves them by these.
func (o *Optimizer) checkFrozen() error {
	if _, plain := o.solver.(*G.VanillaSolver); plain {
		return nil // a gradient of zero moves nothing
	}
	for _, s := range o.segments {
		if s.Param.Frozen {
			return fmt.Errorf("gorgonia: %T would move %s by its moments, which was frozen in the middle of the training: freeze it before the GradFusion is made, or use an optimizer of package optim", o.solver, s.Param.Name)
		}
	}
	return nil
}

// State visits nothing for VanillaSolver, which has no state, and is an error
// for all others.
func (o *Optimizer) State(func(name string, s optim.Segment, t device.Buf) error) error {
	if _, ok := o.solver.(*G.VanillaSolver); ok {
		return nil
	}
	return fmt.Errorf("gorgonia: the moments of %T can be neither read nor written, so its state cannot be saved, resumed or moved: use an optimizer of package optim", o.solver)
}
