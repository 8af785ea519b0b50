package parallel

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// ExecutorConfig is what an Executor runs.
type ExecutorConfig struct {
	Fusion *GradFusion // has the stages of this rank
	Device device.Device
	Loss   Loss // of the last stage
	Feed   Feed
	Seed   uint64 // of dropout

	// Pipe joins the ranks of this rank's column, in the order of the ranks of
	// Schedule; nil for a model that is not cut. It stays the caller's.
	Pipe collective.Comm
	// Schedule gives the computations of a run of so many micro-batches, of
	// which there may be none. It is asked once for each length, and what it
	// returns must pass Check. Nil is schedule.OneStage.
	Schedule func(micros int) (schedule.Schedule, error)
	// Wire is the type in which float32 activations and their gradients travel
	// between ranks: F32, F16 or BF16.
	Wire device.Type
	// Paired starts a send and a receive that two ranks exchange at one time as
	// one batch, at their place in the schedule, as a device needs whose messages
	// have one order. Otherwise receives are posted before their time.
	Paired bool

	// Recompute keeps of a micro-batch what goes from block to block, and makes
	// the rest again in the backward pass; see nn.Pass.
	Recompute bool
	Precision nn.Precision // of every pass
	// Expect is the least that a micro-batch takes for activations of a stage, in
	// bytes, so that memory can be prepared; 0 where it is not known.
	Expect int
	Events *observe.Recorder
}

// Executor runs schedules of actions over this rank's stages. There is one way
// to train: data parallelism and accumulation are one-stage schedules. An
// Executor is used by one goroutine.
//
// What goes from a stage to the next one is copied at the end of its pass and
// travels while the rank goes on; receives are posted before what needs them
// runs. A micro-batch's activations live until the action that ends its backward
// pass. After an error an Executor is of no more use.
type Executor struct {
	cfg      ExecutorConfig
	programs map[programKey]*program
	stages   []*stageRun
	courier  *courier
	micros   []Micro // of the present run
	training bool
	feeding  feeding
	score    func(m Micro, s nn.Score)
}

// NewExecutor returns an executor without work in flight.
func NewExecutor(c ExecutorConfig) *Executor {
	e := &Executor{cfg: c, programs: map[programKey]*program{}, courier: newCourier(c)}
	for _, s := range c.Fusion.stages {
		r := &stageRun{stage: s, first: s.Index == 0, last: s.Index == c.Fusion.layout.stages-1}
		e.stages = append(e.stages, r)
		if r.first || r.last {
			e.feeding.readers++
		}
	}
	return e
}

// Step runs the forward and backward passes of a step of that many samples and
// waits for its gradients; the caller then calls GradFusion.Step. An error
// names the step, the stage and the micro-batch. Gradients accumulate over the
// micro-batches of the step, so it does not go inside GradFusion.NoSync.
func (e *Executor) Step(ctx context.Context, samples, micro int) error {
	if e.cfg.Fusion.noSync {
		return errWholeStep
	}
	e.training = true
	return e.run(ctx, e.cfg.Fusion.Micros(samples, micro), e.cfg.Feed)
}

// Evaluate passes micro-batches forward through all stages, without dropout and
// with running statistics, and calls score for each of them on a rank that holds
// the last stage, in order. All ranks of a column give the same micro-batches;
// feed is called on the ranks with the first or the last stage. Nothing is
// communicated between columns.
func (e *Executor) Evaluate(ctx context.Context, micros iter.Seq[Micro], feed Feed, score func(m Micro, s nn.Score)) error {
	e.training, e.score = false, score
	return e.run(ctx, micros, feed)
}

func (e *Executor) run(ctx context.Context, micros iter.Seq[Micro], feed Feed) error {
	e.micros = e.micros[:0]
	for m := range micros {
		e.micros = append(e.micros, m)
	}
	p, err := e.program(len(e.micros))
	if err != nil {
		return err
	}
	e.feeding.begin(feed, len(e.micros))
	e.courier.begin(p, e.micros, e.training)
	for _, r := range e.stages {
		r.begin(len(e.micros))
	}
	for i := 0; i < len(p.list); {
		end, err := e.do(ctx, p, i)
		if err != nil {
			return e.fail(ctx, p, i, err)
		}
		i = end
	}
	if err := e.courier.drain(ctx); err != nil {
		return e.explain(p, len(p.list)-1, err)
	}
	return nil
}

// do runs the action at list[i], or the batch of sends and receives that begins
// there, and returns what comes next.
func (e *Executor) do(ctx context.Context, p *program, i int) (end int, err error) {
	a := p.list[i]
	if a.Kind >= schedule.SendForward {
		end = schedule.BatchEnd(p.owners, p.list, i)
		return end, e.courier.exchange(ctx, i, end)
	}
	if a.Kind == schedule.Wait {
		return i + 1, e.cfg.Fusion.wait(ctx)
	}
	r := e.stageAt(a.Stage)
	if a.Kind == schedule.Arm {
		r.arm = true
		return i + 1, nil
	}
	if err := e.courier.postAhead(ctx, i); err != nil {
		return 0, err
	}
	start := e.cfg.Events.Now()
	kind := observe.Backward
	if a.Kind == schedule.Forward {
		kind = observe.Forward
		err = e.forward(ctx, r, a.Micro)
	} else {
		err = e.backward(ctx, r, a)
	}
	if e.cfg.Pipe != nil && err == nil {
		start, end := max(start, e.courier.waited), e.cfg.Events.Now() // it has waited for what it needs at first
		r.times.add(a.Kind, end-start)
		e.cfg.Events.Record(observe.Span{Kind: kind, Lane: "schedule", Name: p.names[i], Start: start, End: end, Step: e.courier.step(), Micro: e.micros[a.Micro].Index})
	}
	return i + 1, err
}

func (e *Executor) stageAt(index int) *stageRun {
	for _, r := range e.stages {
		if r.Index == index {
			return r
		}
	}
	panic(fmt.Sprintf("parallel: stage %d is not here", index)) // program has looked
}

// Activations returns the most bytes of activations, their gradients and what
// travels between stages that this rank held at once so far.
func (e *Executor) Activations() int {
	bytes := e.courier.arena.Peak()
	for _, r := range e.stages {
		bytes += r.peak()
	}
	return bytes
}

var errWholeStep = errors.New("parallel: Executor.Step inside NoSync: it runs a whole step, whose gradients are summed at its end; more micro-batches in a step accumulate")

var errOneStage = errors.New("parallel: a model in several stages needs ExecutorConfig.Pipe and ExecutorConfig.Schedule")
