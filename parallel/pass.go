package parallel

import (
	"context"

	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// stageRun is a stage in an Executor.
type stageRun struct {
	*stage
	first, last bool      // of the model
	arm         bool      // the next backward pass releases buckets
	flights     []*flight // by micro-batch of the run; tapes are used again
	free        []*flight
	times       actionTimes // of the present run
}

// flight is a micro-batch between its forward and its backward pass through a
// stage.
type flight struct {
	tape    *nn.Tape
	in, out []*nn.Var
	loss    *nn.Var
	parcel  *parcel // has the memory of in; nil in the first stage
}

func (r *stageRun) begin(micros int) {
	r.arm, r.times = false, actionTimes{}
	for len(r.flights) < micros {
		r.flights = append(r.flights, nil)
	}
}

func (r *stageRun) peak() (bytes int) {
	for _, list := range [][]*flight{r.flights, r.free} {
		for _, f := range list {
			if f != nil {
				bytes += f.tape.Arena().Peak()
			}
		}
	}
	return bytes
}

func (e *Executor) take(r *stageRun) *flight {
	if n := len(r.free); n > 0 {
		f := r.free[n-1]
		r.free = r.free[:n-1]
		return f
	}
	f := &flight{tape: nn.NewTape(e.cfg.Device)}
	f.tape.Events = e.cfg.Events
	f.tape.Arena().Expect(e.cfg.Expect)
	return f
}

// forward runs a micro-batch forward through a stage.
func (e *Executor) forward(ctx context.Context, r *stageRun, micro int) (err error) {
	defer nn.Catch(&err)
	batch, err := e.batch(ctx, r, micro)
	if err != nil {
		return err
	}
	f := e.take(r)
	f.tape.Begin(nn.Pass{Training: e.training, Seed: e.cfg.Seed, Step: e.courier.step() - 1, Micro: e.micros[micro].Index, Recompute: e.cfg.Recompute || r.Recompute, Precision: e.cfg.Precision})
	f.in = f.in[:0]
	if r.first {
		f.in = append(f.in, f.tape.Input(batch.Input, batch.Shape, false))
	} else {
		if f.parcel, err = e.courier.take(ctx, r.Index-1, down, micro); err != nil {
			return err
		}
		for i, b := range f.parcel.bufs {
			f.in = append(f.in, f.tape.Input(b, f.parcel.spec.shapes[i], f.parcel.spec.needs[i]))
		}
	}
	f.out = nn.Forward(f.tape, r.Blocks, f.in...)
	if r.last {
		f.loss = e.cfg.Loss(f.tape, f.out, batch)
	} else if err := e.courier.packValues(r.Index, micro, f.out); err != nil {
		return err
	}
	r.flights[micro] = f
	if e.training {
		return nil
	}
	if r.last {
		e.score(e.micros[micro], f.loss.Score())
	}
	e.land(r, micro)
	return nil
}

// batch asks for a micro-batch's samples if the stage reads them.
func (e *Executor) batch(ctx context.Context, r *stageRun, micro int) (Batch, error) {
	if !r.first && !r.last {
		return Batch{}, nil
	}
	start := e.cfg.Events.Now()
	b, err := e.feeding.get(ctx, e.micros, micro)
	e.cfg.Events.Record(observe.Span{Kind: observe.Data, Lane: "compute", Name: "data", Start: start, End: e.cfg.Events.Now(), Step: e.courier.step(), Micro: e.micros[micro].Index})
	return b, err
}

// backward runs both halves of a backward pass, or one.
func (e *Executor) backward(ctx context.Context, r *stageRun, a schedule.Action) error {
	if err := e.cut(a.Micro); err != nil {
		return err
	}
	f, m, g := r.flights[a.Micro], e.micros[a.Micro], e.cfg.Fusion
	if a.Kind != schedule.Weight {
		if err := e.seed(ctx, r, f, a.Micro); err != nil {
			return err
		}
	}
	var err error
	switch a.Kind {
	case schedule.Backward:
		err = g.backward(r.stage, f.tape, m, r.arm, (*nn.Tape).Backward)
	case schedule.Input:
		err = backwardInput(f.tape)
	case schedule.Weight:
		err = g.backward(r.stage, f.tape, m, r.arm, (*nn.Tape).BackwardWeight)
	}
	if err == nil && a.Kind != schedule.Weight && !r.first {
		err = e.courier.packGradients(r.Index-1, a.Micro, f.in)
	}
	if err == nil && a.Kind != schedule.Input {
		e.land(r, a.Micro)
	}
	return err
}

func backwardInput(t *nn.Tape) (err error) {
	defer nn.Catch(&err)
	t.BackwardInput()
	return nil
}

// cut cuts the buckets of all stages before the first backward pass of this rank.
// Its stages have all run that micro-batch forward, and all ranks of a stage do
// so in the same order, whatever micro-batches and schedules they have.
func (e *Executor) cut(micro int) error {
	for i := len(e.stages) - 1; i >= 0; i-- {
		r := e.stages[i]
		if r.reducer.buckets != nil {
			continue
		}
		if err := e.cfg.Fusion.cut(r.stage, r.flights[micro].tape.Uses()); err != nil {
			return err
		}
	}
	return nil
}

// seed starts a backward pass: at the loss, or with the gradients that the next
// stage has computed.
func (e *Executor) seed(ctx context.Context, r *stageRun, f *flight, micro int) (err error) {
	defer nn.Catch(&err)
	if r.last {
		return e.cfg.Fusion.seedLoss(f.tape, f.loss, e.micros[micro])
	}
	p, err := e.courier.take(ctx, r.Index, up, micro)
	if err != nil {
		return err
	}
	k := 0
	for i, v := range f.out {
		if p.spec.needs[i] {
			f.tape.SeedGrad(v, p.bufs[k])
			k++
		}
	}
	e.courier.give(p)
	return nil
}

// land ends a flight.
func (e *Executor) land(r *stageRun, micro int) {
	f := r.flights[micro]
	if f.parcel != nil {
		e.courier.give(f.parcel)
		f.parcel = nil
	}
	if r.first || r.last {
		e.feeding.done(micro)
	}
	r.flights[micro] = nil
	r.free = append(r.free, f)
}
