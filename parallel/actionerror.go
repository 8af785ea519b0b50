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
	where := ""
	switch {
	case e.Step == 0:
		where = "evaluation, "
	case !saysStep(e.Err):
		where = fmt.Sprintf("step %d, ", e.Step)
	}
	if e.Stage >= 0 {
		where += fmt.Sprintf("stage %d, ", e.Stage)
	}
	where += e.Action
	if e.Micro >= 0 {
		where += fmt.Sprintf(" of micro-batch %d", e.Micro)
	}
	return fmt.Sprintf("%s: %v\nrank %d of the pipeline was at\n%s", where, e.Err, e.Rank, e.Grid)
}

func (e *ActionError) Unwrap() error { return e.Err }

// passName is what an action that is about a micro-batch does, in words.
func passName(k schedule.Kind) (name string, isPass bool) {
	switch k {
	case schedule.Forward:
		return "forward pass", true
	case schedule.Backward:
		return "backward pass", true
	case schedule.Input:
		return "first half of the backward pass", true
	case schedule.Weight:
		return "second half of the backward pass", true
	case schedule.SendForward:
		return "sending the values", true
	case schedule.RecvForward:
		return "receiving the values", true
	case schedule.SendBackward:
		return "sending the gradients", true
	case schedule.RecvBackward:
		return "receiving the gradients", true
	}
	return "", false
}

// fail says where an error happened, to all ranks if they can still be told.
func (e *Executor) fail(ctx context.Context, p *program, at int, err error) error {
	a := p.list[at]
	name, isPass := passName(a.Kind)
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
	name, isPass := passName(a.Kind)
	if e.cfg.Pipe == nil {
		switch {
		case a.Kind == schedule.Wait:
			return e.cfg.Fusion.inStep(err)
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
