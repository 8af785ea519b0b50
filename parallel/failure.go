package parallel

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// RankError is what every rank of a step returns that one of them could not do.
type RankError struct {
	Step, Rank int
	Alone      bool // there is only one rank
	// Err is what happened, on the rank itself; on the others it has the same text,
	// and is the same error where that is one of this package's.
	Err error
}

func (e *RankError) Error() string {
	if e.Alone {
		return fmt.Sprintf("step %d, %v", e.Step, e.Err)
	}
	return fmt.Sprintf("step %d, rank %d: %v", e.Step, e.Rank, e.Err)
}

func (e *RankError) Unwrap() error { return e.Err }

// LossError is what Wait returns on all ranks when the loss of a micro-batch is no
// finite number, unless a loss scale is there to be lowered. Nothing is updated.
type LossError struct {
	Step, Micro, Rank int
	Loss              float64 // summed over the samples of the micro-batch
}

func (e *LossError) Error() string {
	return fmt.Sprintf("the loss of step %d is %v, first in micro-batch %d on rank %d", e.Step, e.Loss, e.Micro, e.Rank)
}

// ErrSkipped is wrapped by Wait's error when a rank did not run every micro-batch
// of Micros, in order.
var ErrSkipped = errors.New("a micro-batch was left out")

// remoteError is another rank's error, of which the text and the kind have come.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

// kinds are the errors that keep their identity from rank to rank.
func kinds() []error {
	return []error{nil, ErrNotSynchronised, ErrSkipped, errUnused, errMoreUses, ErrHook}
}

// Fail takes the place of Wait on a rank that cannot complete the step, because
// Backward or something of the caller's own failed: it tells all ranks why, whose
// Wait returns the same *RankError, and returns that. The rank takes part in the
// sums of the step for that, so no rank waits for a time-out. Of a model that is
// cut over ranks, or when a call between ranks has failed, it returns err alone.
func (g *GradFusion) Fail(ctx context.Context, err error) error {
	g.failed = err
	if g.cfg.World != nil || g.cfg.LocalSGD > 0 || g.leaves.count == 0 || ctx.Err() != nil {
		return err
	}
	told := g.finish(ctx)
	if e := (*RankError)(nil); errors.As(told, &e) {
		return told
	}
	return err // the ranks no longer hear each other
}

// left returns an error when this rank did not run all of its micro-batches and
// arm the last.
func (g *GradFusion) left() error {
	l := &g.leaves
	switch p := g.phase(); {
	case p == armed || l.lo == l.hi && p == idle:
		return nil
	case p == idle && l.ran == l.lo:
		return fmt.Errorf("%w: none of %d to %d ran", ErrSkipped, l.lo, l.hi-1)
	case l.ran < l.hi:
		return fmt.Errorf("%w: %d to %d did not run", ErrSkipped, l.ran, l.hi-1)
	}
	return ErrNotSynchronised
}

// follow checks that micro-batches run one after another. One that does not is
// left to Wait, where all ranks learn of it.
func (g *GradFusion) follow(m Micro) bool {
	l := &g.leaves
	if g.failed == nil && m.Index != l.ran {
		g.failed = fmt.Errorf("%w: %d ran where %d was due", ErrSkipped, m.Index, l.ran)
	}
	l.ran = m.Index + 1
	return g.failed == nil
}

// pad makes up for what a failed step has not computed, so that this rank's sums
// have the shapes that the others expect.
func (r *reducer) pad() {
	if !r.cfg.Deterministic {
		return
	}
	for _, k := range r.sequence[r.next:] {
		b, next := r.buckets[k], r.lo
		if b.skipped {
			continue
		}
		if b.table != nil {
			for _, n := range b.table.tree.nodes {
				next = n.lo + n.size
			}
			for ; next < r.hi; next++ {
				b.table.empty(next)
			}
			continue
		}
		for _, n := range b.tree.nodes {
			next = n.lo + n.size
		}
		for ; next < r.hi; next++ {
			leaf := b.leaf // of a backward pass that did not end
			if b.leaf = (device.Buf{}); leaf.IsZero() {
				leaf = r.take(b)
			}
			b.tree.push(node{lo: next, size: 1, buf: leaf}, func(spare device.Buf) { r.give(b, spare) })
		}
	}
}

// failures tells all ranks when any of them has failed.
func (g *GradFusion) failures(ctx context.Context, w *layout) error {
	l, failed := &g.leaves, false
	for p := range w.places {
		failed = failed || l.all[l.bounds[p]] < 0
	}
	if !failed {
		return nil
	}
	own := g.failed
	g.failed = nil
	if len(w.places) == 1 {
		return &RankError{Step: g.step + 1, Rank: w.from, Alone: len(g.layout.places) == 1, Err: own}
	}
	message := []byte{}
	if own != nil {
		kind := 0
		for i, k := range kinds() {
			if k != nil && errors.Is(own, k) {
				kind = i
			}
		}
		message = append([]byte{byte(kind)}, own.Error()...)
	}
	all, err := collective.GatherBytes(ctx, w.world, message, "failures")
	if err != nil {
		return errors.Join(own, err)
	}
	for rank, m := range all {
		if len(m) == 0 {
			continue
		}
		e := &RankError{Step: g.step + 1, Rank: rank, Err: own}
		if rank != g.layout.own {
			e.Err = &remoteError{string(m[1:]), kinds()[int(m[0])%len(kinds())]}
		}
		return e
	}
	return errors.New("parallel: a rank failed without saying why")
}

// finite returns a *LossError for the first micro-batch whose loss is no finite
// number.
func (l *leaves) finite(step int, w *layout) error {
	for _, r := range w.losses {
		place := w.places[r]
		micro, _ := data.Run(l.count, place.columns, place.column)
		for at := l.bounds[r] + leafStart; at < l.bounds[r+1]; at += place.width {
			if v := l.all[at]; math.IsNaN(v) || math.IsInf(v, 0) {
				return &LossError{Step: step, Micro: micro, Rank: w.from + r, Loss: v}
			}
			micro++
		}
	}
	return nil
}

// finish takes part in all that a step has left to communicate.
func (g *GradFusion) finish(ctx context.Context) (err error) {
	defer nn.Catch(&err)
	empty := g.leaves.lo == g.leaves.hi
	ended := g.endNorms(empty)
	if err := errors.Join(g.cutAll(), ended()); err != nil {
		return err
	}
	if err := g.open(ctx); err != nil {
		return err
	}
	for i := len(g.stages) - 1; i >= 0; i-- {
		r := g.stages[i].reducer
		if g.failed != nil {
			r.pad()
		}
		if r.held {
			if err := g.deferred.timing.probe(ctx, r, empty); err != nil {
				return err
			}
		}
		r.releaseAll(empty)
	}
	return g.collect(ctx)
}
