package parallel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/nn"
)

// Stage is a part of a model that a rank holds: a slice of its blocks, and the
// ranks that hold the same part. A model that is not cut is one stage.
type Stage struct {
	Blocks []nn.Block
	// Comm joins the ranks that hold this stage, one of each column, in the
	// order of the columns. The stages of a rank may name one Comm; each but the
	// first then gets one of its own, made from it, because they let go of their
	// gradients in whichever order the schedule has.
	Comm collective.Comm
	// Index is the stage's place in the model, from 0. A rank lists its stages
	// in ascending order.
	Index int
	// Recompute makes this stage what ExecutorConfig.Recompute makes all.
	Recompute bool
	// Tied has, by the name of a parameter that other ranks of this column hold
	// as well (an embedding that is the head's matrix too), the Comm of the
	// column's ranks that do. Each holds its own copy; a rank that holds two of
	// them in two stages has two parameters of one name. The gradients of all
	// uses are added in the order of the stages, and the copies stay equal.
	Tied map[string]collective.Comm
}

// stage is a Stage at work.
type stage struct {
	Stage
	reducer *reducer
	params  []*nn.Param // those that are not trained too
	states  []nn.State
	running []*nn.Running
	offset  int // of the running statistics in a row of leaves
	phase   phase
}

// phase is how far a stage has come in the present step.
type phase uint8

const (
	idle    phase = iota // no micro-batch yet
	local                // micro-batches ran, none armed
	armed                // the last micro-batch ran
	reduced              // Wait has returned
)

func newStage(ctx context.Context, s Stage, cfg FusionConfig) *stage {
	out := &stage{Stage: s, params: nn.Params(s.Blocks), states: nn.States(s.Blocks)}
	for _, state := range out.states {
		if n := len(out.running); state.Running != nil && (n == 0 || out.running[n-1] != state.Running) {
			out.running = append(out.running, state.Running)
		}
	}
	out.reducer = newReducer(ctx, cfg, s.Comm, trainable(out.params))
	return out
}

// begin prepares a step of count micro-batches, of which [lo, hi) are this
// column's.
func (s *stage) begin(lo, hi, count int) {
	s.phase = idle
	r := s.reducer
	r.lo, r.hi, r.count = lo, hi, count
	r.opened = false
	if r.buckets != nil && !r.cfg.Defer { // whose buckets may be on their way
		r.opened = true
		r.begin()
	}
}

func trainable(params []*nn.Param) (out []*nn.Param) {
	for _, p := range params {
		if !p.Frozen {
			out = append(out, p)
		}
	}
	return out
}

// phase is that of the stage that is behind the others.
func (g *GradFusion) phase() phase {
	least := reduced
	for _, s := range g.stages {
		least = min(least, s.phase)
	}
	return least
}

// checkStages refuses what cannot be one rank's stages.
func checkStages(stages []Stage) error {
	if len(stages) == 0 {
		return errors.New("parallel: a rank without a stage has nothing to train")
	}
	for i, s := range stages {
		if s.Comm == nil {
			return fmt.Errorf("parallel: stage %d has no Comm", s.Index)
		}
		if s.Index < 0 || i > 0 && s.Index <= stages[i-1].Index {
			return fmt.Errorf("parallel: stage %d does not follow the one before it: list a rank's stages in ascending order", s.Index)
		}
		if first := stages[0].Comm; s.Comm.Size() != first.Size() || s.Comm.Rank() != first.Rank() {
			return fmt.Errorf("parallel: this rank is column %d of %d of stage %d, but column %d of %d of stage %d",
				s.Comm.Rank(), s.Comm.Size(), s.Index, first.Rank(), first.Size(), stages[0].Index)
		}
	}
	return nil
}

// separate gives stages that name the same Comm one each. It is collective.
func (g *GradFusion) separate(ctx context.Context, stages []Stage) ([]Stage, error) {
	stages = slices.Clone(stages)
	for i := range stages {
		shared := slices.ContainsFunc(stages[:i], func(s Stage) bool { return s.Comm == stages[i].Comm })
		if !shared || stages[i].Comm.Size() == 1 {
			continue
		}
		c, err := collective.Twin(ctx, stages[i].Comm)
		if err != nil {
			return nil, fmt.Errorf("stage %d: a Comm of its own: %w", stages[i].Index, err)
		}
		stages[i].Comm = c
		g.owned = append(g.owned, c)
	}
	return stages, nil
}

// closeOwned closes what separate has made.
func (g *GradFusion) closeOwned() error {
	var errs []error
	for _, c := range g.owned {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// column is this rank's place among the ranks that train other micro-batches.
func (g *GradFusion) column() (column, columns int) {
	c := g.stages[0].Comm
	return c.Rank(), c.Size()
}

// stageNamed says which stage an error is about, where there are several.
func (g *GradFusion) stageNamed(s *stage, err error) error {
	if err == nil || g.layout.stages == 1 {
		return err
	}
	return fmt.Errorf("stage %d: %w", s.Index, err)
}
