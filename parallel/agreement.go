package parallel

import (
	"context"
	"slices"
)

// What a rank reports of a step to all others, in one number: the caller's votes
// are the lower 32 bits; the bits above are this package's, of which all ranks
// learn before anything is updated. At most 53 bits fit.
const verdictShift = 32

// Vote sets bits that every rank learns of in the Outcome of the present step's
// Wait: how ranks agree to stop, or that something is due.
func (g *GradFusion) Vote(bits uint32) { g.votes |= bits }

// collect ends the communication of a step.
func (g *GradFusion) collect(ctx context.Context) error {
	if g.cfg.Defer { // whoever needs a sum waits for it
		g.deferred.step = g.step + 1
		return g.agree(ctx)
	}
	if err := g.Complete(ctx); err != nil {
		return err
	}
	for _, s := range slices.Backward(g.stages) {
		if err := s.reducer.wait(ctx); err != nil {
			return g.stageNamed(s, err)
		}
		if g.failed == nil {
			g.failed = s.reducer.failure
		}
		s.reducer.failure = nil
	}
	for _, t := range g.ties {
		if err := t.start(ctx); err != nil {
			return err
		}
	}
	if err := g.agree(ctx); err != nil { // which needs no sums of ties
		return err
	}
	for _, t := range g.ties {
		if err := t.sum(ctx, g.cfg.Device.Kernels(), g.deferred.weight); err != nil {
			return err
		}
	}
	return nil
}

// agree ends a step's communication when this rank's gradients are summed: what
// it found out about them, its votes and its leaves go to all ranks of the world,
// and g.agreed and g.outcome hold afterwards what any rank found.
func (g *GradFusion) agree(ctx context.Context) error {
	verdict := g.inspect() << verdictShift
	if g.scope() == &g.layout {
		verdict |= uint64(g.votes)
		g.votes = 0
	}
	agreed, err := g.mergeLeaves(ctx, verdict)
	if err != nil {
		return err
	}
	g.outcome.Votes = uint32(agreed)
	g.agreed = agreed >> verdictShift
	return nil
}
