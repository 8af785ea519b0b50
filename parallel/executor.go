package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// Batch is the samples of one micro-batch.
type Batch struct {
	Input  device.Buf
	Shape  nn.Shape
	Target device.Buf
	Done   func() // gives the memory back; called once, nil for nothing
}

// Feed gives a micro-batch's samples. It is called in the order of the
// schedule's forward actions.
type Feed func(ctx context.Context, m Micro) (Batch, error)

// Loss puts a model's loss on the tape.
type Loss func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var

// ExecutorConfig is what an Executor runs.
type ExecutorConfig struct {
	Fusion *GradFusion
	Device device.Device
	Blocks []nn.Block
	Loss   Loss
	Feed   Feed
	Seed   uint64 // of dropout
	// Recompute keeps of a micro-batch what goes from block to block, and makes
	// the rest again in the backward pass; see nn.Pass.
	Recompute bool
	// Expect is the least that a micro-batch takes for activations, in bytes, so
	// that memory can be prepared; 0 where it is not known.
	Expect int
	Events *observe.Recorder
}

// Executor runs schedules of actions over this rank's blocks. There is one way
// to train: data parallelism and accumulation are one-stage schedules. An
// Executor is used by one goroutine.
type Executor struct {
	cfg       ExecutorConfig
	schedules map[int][]schedule.Action // one-stage lists by length of the run
	micros    []Micro
	armed     bool      // the next backward pass releases buckets
	flights   []*flight // by micro-batch of the run; tapes are used again
	free      []*flight
}

// flight is a micro-batch between its forward and its backward pass.
type flight struct {
	tape  *nn.Tape
	loss  *nn.Var
	batch Batch
}

// NewExecutor returns an executor without work in flight.
func NewExecutor(c ExecutorConfig) *Executor {
	return &Executor{cfg: c, schedules: map[int][]schedule.Action{}}
}

// Step runs the forward and backward passes of a step of that many samples and
// waits for its gradients; the caller then calls GradFusion.Step. An error
// names the step and the micro-batch.
func (e *Executor) Step(ctx context.Context, samples, micro int) error {
	e.micros, e.armed = e.micros[:0], false
	for m := range e.cfg.Fusion.Micros(samples, micro) {
		e.micros = append(e.micros, m)
	}
	for len(e.flights) < len(e.micros) {
		e.flights = append(e.flights, nil)
	}
	for _, a := range e.schedule(len(e.micros)) {
		if err := e.run(ctx, a); err != nil {
			if a.Kind == schedule.Wait {
				return err // which says the step
			}
			return fmt.Errorf("step %d, %s: %w", e.cfg.Fusion.Completed()+1, e.describe(a), err)
		}
	}
	return nil
}

// describe says what an action is, for errors.
func (e *Executor) describe(a schedule.Action) string {
	pass := "forward"
	switch a.Kind {
	case schedule.Forward:
	case schedule.Backward:
		pass = "backward"
	default:
		return "action " + a.String()
	}
	return fmt.Sprintf("%s pass of micro-batch %d", pass, e.micros[a.Micro].Index)
}

func (e *Executor) schedule(micros int) []schedule.Action {
	list, ok := e.schedules[micros]
	if !ok {
		list = schedule.OneStage(micros)[0]
		e.schedules[micros] = list
	}
	return list
}

func (e *Executor) run(ctx context.Context, a schedule.Action) error {
	switch a.Kind {
	case schedule.Forward:
		return e.forward(ctx, a.Micro)
	case schedule.Backward:
		return e.backward(a.Micro)
	case schedule.Arm:
		e.armed = true
		return nil
	case schedule.Wait:
		return e.cfg.Fusion.Wait(ctx)
	}
	return fmt.Errorf("this executor has no %s", a.Kind)
}

func (e *Executor) forward(ctx context.Context, micro int) (err error) {
	defer nn.Catch(&err)
	m := e.micros[micro]
	start := e.cfg.Events.Now()
	b, err := e.cfg.Feed(ctx, m)
	if err != nil {
		return err
	}
	step := e.cfg.Fusion.Completed()
	e.cfg.Events.Record(observe.Span{Kind: observe.Data, Lane: "compute", Name: "data", Start: start, End: e.cfg.Events.Now(), Step: step + 1, Micro: m.Index})
	f := e.take()
	f.tape.Begin(nn.Pass{Training: true, Seed: e.cfg.Seed, Step: step, Micro: m.Index, Recompute: e.cfg.Recompute})
	out := nn.Forward(f.tape, e.cfg.Blocks, f.tape.Input(b.Input, b.Shape, false))
	f.loss, f.batch = e.cfg.Loss(f.tape, out, b), b
	e.flights[micro] = f
	return nil
}

func (e *Executor) backward(micro int) error {
	f := e.flights[micro]
	g, m := e.cfg.Fusion, e.micros[micro]
	if err := g.seedLoss(f.tape, f.loss, m); err != nil {
		return err
	}
	if err := g.backward(g.stages[0], f.tape, m, e.armed, (*nn.Tape).Backward); err != nil {
		return err
	}
	if f.batch.Done != nil {
		f.batch.Done()
	}
	e.flights[micro] = nil
	e.free = append(e.free, f)
	return nil
}

// Activations returns the most bytes of activations and their gradients that the
// passes held at once so far.
func (e *Executor) Activations() int {
	bytes := 0
	for _, list := range [][]*flight{e.flights, e.free} {
		for _, f := range list {
			if f != nil {
				bytes += f.tape.Arena().Peak()
			}
		}
	}
	return bytes
}

func (e *Executor) take() *flight {
	if n := len(e.free); n > 0 {
		f := e.free[n-1]
		e.free = e.free[:n-1]
		return f
	}
	f := &flight{tape: nn.NewTape(e.cfg.Device)}
	f.tape.Events = e.cfg.Events
	f.tape.Arena().Expect(e.cfg.Expect)
	return f
}
