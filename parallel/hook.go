package parallel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Hook takes the place of a bucket's sum over the ranks of its stage: when the
// work that it returns is done, Bucket.Gradient has to hold the step's gradient,
// the same on every rank. It is called once a step for each bucket, in the same
// order on all ranks, when the bucket is complete on this rank, in the middle of
// the backward pass and on its goroutine: it must not block. It may start calls on
// Bucket.Comm or a Comm of its own, hand the bucket to a goroutine and return a
// collective.NewWork, or change the gradient and return Bucket.Sum(). To follow
// the sum instead, it waits for Bucket.Sum() on a goroutine.
//
// A work that ends with an error, one that takes longer than
// FusionConfig.HookTimeout, and no work at all are an error of Wait that wraps
// ErrHook, on all ranks. A hook may do nothing else to Comms on one rank only.
type Hook func(Bucket) *collective.Work

// Bucket is a flat run of gradients of one stage on its way to be summed.
type Bucket struct {
	Index  int
	Label  string // names the parameters
	Params []*nn.Param
	// Gradient is this rank's part of the gradient of the mean over the whole step,
	// summed over its micro-batches; F32, the parameters one after another, each
	// from a multiple of device.NormBlock elements on. With Deterministic it is
	// undefined until the work of Sum is done.
	Gradient device.Buf
	Comm     collective.Comm

	hooks *hookReduction
	of    *bucket
}

// Sum starts the sum that there would be without a hook and returns its work. It
// may be called once, by the hook before it returns; with Deterministic and with
// Shard, whose sums take other forms than an all-reduce, it must.
func (b Bucket) Sum() *collective.Work {
	b.hooks.sum = b.hooks.reduction.start(b.of)
	return b.hooks.sum
}

// ErrHook is wrapped by the error of a step whose hook failed.
var ErrHook = errors.New("the gradient hook failed")

// hookReduction calls a hook for each bucket.
type hookReduction struct {
	reduction // what Sum does
	r         *reducer
	views     []Bucket
	sum       *collective.Work // that the hook which runs now has started
}

// newHookReduction puts the hook of the configuration in front of r's reduction.
func newHookReduction(r *reducer) *hookReduction {
	h := &hookReduction{reduction: r.reduction, r: r}
	for _, b := range r.buckets {
		v := Bucket{Index: b.index, Label: b.label, Gradient: b.grad, Comm: r.comm, hooks: h, of: b}
		for _, e := range b.entries {
			v.Params = append(v.Params, e.param)
		}
		h.views = append(h.views, v)
	}
	return h
}

func (h *hookReduction) start(b *bucket) *collective.Work {
	h.sum = nil
	w := h.r.cfg.Hook(h.views[b.index])
	b.sum = h.sum
	if h.sum == nil && (h.r.cfg.Deterministic || h.r.cfg.Shard) {
		return endedWork(errors.New("it did not call Sum, without which Deterministic and Shard have no gradient"))
	}
	if w == nil {
		return endedWork(errors.New("it returned no work"))
	}
	if b.table != nil && h.sum == nil {
		b.table.param.Touch(nil, true)
	}
	return w
}

// endedWork is a work that has ended with err, or without an error.
func endedWork(err error) *collective.Work {
	w, complete := collective.NewWork()
	complete(err)
	return w
}

func (c FusionConfig) hookTimeout() time.Duration {
	if c.HookTimeout > 0 {
		return c.HookTimeout
	}
	return 30 * time.Second
}

// hooked waits for the sum that a hook has started and for its work. Failures of
// that are this rank's own, of which the others learn when all buckets have been
// waited for.
func (r *reducer) hooked(ctx context.Context, b *bucket) (failure, err error) {
	if b.sum != nil {
		if err := b.sum.Wait(ctx); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.hookTimeout())
	defer cancel()
	switch err := b.work.Wait(limited); {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, err
	case limited.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s has not ended within %v", ErrHook, b.label, r.cfg.hookTimeout()), nil
	default:
		return fmt.Errorf("%w: %s: %w", ErrHook, b.label, err), nil
	}
}

// checkHook refuses what a hook does not go with.
func (c FusionConfig) checkHook() error {
	switch {
	case c.Hook == nil:
		return nil
	case c.LocalSGD > 0:
		return errors.New("parallel: Hook does not go with LocalSGD, which sums no gradients")
	case c.HookTimeout < 0:
		return fmt.Errorf("parallel: HookTimeout is %v, want above 0", c.HookTimeout)
	}
	return nil
}
