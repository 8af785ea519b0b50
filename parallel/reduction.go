package parallel

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
)

// reduction is how the gradients of a bucket are summed over the ranks of a
// stage. README.md says how to add one.
type reduction interface {
	// start begins with a bucket whose gradients are complete on this rank and
	// never blocks. When the work is done, b.grad holds the sum on every rank,
	// or at least, if b.scattered, in this rank's part of it.
	// All ranks start the buckets of a step in the order of their indices.
	start(b *bucket) *collective.Work
	// close waits for what the reduction owns; nothing is started afterwards.
	close()
}

// newReduction chooses the reduction of a stage.
func newReduction(r *reducer) reduction {
	switch {
	case r.cfg.LocalSGD > 0:
		return localReduction{r.nothing}
	case r.cfg.Deterministic:
		return newCanonicalReduction(r)
	case r.cfg.Wire.off():
		return plainReduction{r}
	case r.cfg.Wire.Format == PowerSGD && r.comm.Size() > 1:
		return newLowRankReduction(r)
	}
	return newEncodedReduction(r)
}

// plainReduction is one all-reduce a bucket, in whichever order of additions its
// plan has.
type plainReduction struct{ r *reducer }

func (p plainReduction) start(b *bucket) *collective.Work {
	if p.r.comm.Size() == 1 {
		return p.r.nothing // a call would wake a goroutine, and whatever thread runs that
	}
	call := collective.Call{Kind: plan.AllReduce, In: b.grad, Label: b.label}
	if b.scattered() {
		call.Kind, call.InBounds = plan.ReduceScatter, b.bounds
	}
	return p.r.comm.Start(p.r.ctx, call)
}

func (plainReduction) close() {}
