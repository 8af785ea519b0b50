package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// ActionError says at which action of a pipeline's schedule a rank failed. Its
// text ends with the schedule around that action and an arrow that points at it.
type ActionError struct {
	Step   int    // 0 in an evaluation
	Stage  int    // -1 for Wait
	Micro  int    // index in the step; -1 for Arm and Wait
	Action string // as the schedule has it, with the micro-batch's index in the column's run
	Rank   int    // in the pipe
	Err    error
	Grid   string
}

func (e *ActionError) Error() string {
	where := "evaluation"
	if e.Step > 0 {
		where = fmt.Sprintf("step %d", e.Step)
	}
	if e.Stage >= 0 {
		where += fmt.Sprintf(", stage %d", e.Stage)
	}
	where += ", " + e.Action
	if e.Micro >= 0 {
		where += fmt.Sprintf(" of micro-batch %d", e.Micro)
	}
	return fmt.Sprintf("%s: %v\nrank %d of the pipeline was at\n%s", where, e.Err, e.Rank, e.Grid)
}

func (e *ActionError) Unwrap() error { return e.Err }

var passNames = map[schedule.Kind]string{
	schedule.Forward:      "forward pass",
	schedule.Backward:     "backward pass",
	schedule.Input:        "first half of the backward pass",
	schedule.Weight:       "second half of the backward pass",
	schedule.SendForward:  "sending the values",
	schedule.RecvForward:  "receiving the values",
	schedule.SendBackward: "sending the gradients",
	schedule.RecvBackward: "receiving the gradients",
}

// fail says where an error happened, to all ranks if they can still be told.
func (e *Executor) fail(ctx context.Context, p *program, at int, err error) error {
	a := p.list[at]
	name, isPass := passNames[a.Kind]
	if e.cfg.Pipe != nil || !e.training || !isPass {
		return e.explain(p, at, err)
	}
	named := fmt.Errorf("%s of micro-batch %d: %w", name, e.micros[a.Micro].Index, err)
	told := e.cfg.Fusion.Fail(ctx, named)
	if told == named {
		return e.explain(p, at, err)
	}
	return told
}

// explain says where an error happened.
func (e *Executor) explain(p *program, at int, err error) error {
	a := p.list[at]
	name, isPass := passNames[a.Kind]
	if e.cfg.Pipe == nil {
		switch {
		case a.Kind == schedule.Wait:
			return err // which says the step
		case !e.training:
			return fmt.Errorf("%s of micro-batch %d: %w", name, e.micros[a.Micro].Index, err)
		}
		return fmt.Errorf("step %d, %s of micro-batch %d: %w", e.cfg.Fusion.Completed()+1, name, e.micros[a.Micro].Index, err)
	}
	out := &ActionError{Stage: a.Stage, Micro: -1, Action: a.Kind.String(), Rank: p.rank, Err: err,
		Grid: p.lowered.Picture(schedule.Position{Rank: p.rank, Index: at})}
	if e.training {
		out.Step = e.cfg.Fusion.Completed() + 1
	}
	if a.Kind == schedule.Wait {
		out.Stage = -1
	}
	if isPass {
		out.Action, out.Micro = name, e.micros[a.Micro].Index
	}
	return out
}
