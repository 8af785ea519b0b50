package parallel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// reducer sums the gradients of one stage over the ranks of its Comm.
type reducer struct {
	ctx    context.Context // ends with the GradFusion that owns the reducer
	cfg    FusionConfig
	comm   collective.Comm
	params []*nn.Param // trainable, in the model's order
	tied   map[*nn.Param]bool

	buckets []*bucket // nil until cut
	entries map[*nn.Param]*entry
	free    [][]device.Buf // deterministic: spare leaf buffers per bucket

	armed    bool  // buckets are released as they fill
	held     bool  // not even then, but by whoever waits
	sequence []int // of the buckets, in which they are released
	next     int   // first place in sequence that has not been released
	lo       int   // this rank's run of leaves
	hi       int
	count    int // leaves of the step, over all ranks

	kept     []float32 // memory for what buckets keep, where a wire loses something
	squares  []float64 // scratch of scan
	overflow *entry    // the first that scan found in the present step

	opened bool          // begin was called in the present step
	ready  func(*bucket) // is told of full buckets; nil: nobody is

	step      int     // the present one, from 1
	lossScale float64 // of the present step
	reduction reduction
	fetched   *collective.Work // of the last step: the others have read this rank's part of the parameters

	fetchLabel string           // of the calls around reading the others' parts
	nothing    *collective.Work // has ended
	failure    error            // of a hook in the present step
}

func newReducer(ctx context.Context, cfg FusionConfig, comm collective.Comm, params []*nn.Param) *reducer {
	r := &reducer{ctx: ctx, cfg: cfg, comm: comm, params: params, tied: map[*nn.Param]bool{}, nothing: endedWork(nil)}
	r.reduction = newReduction(r)
	return r
}

// errUnused explains a bucket that never became full.
var errUnused = errors.New("no gradient arrived")

// errMoreUses explains a delivery that nobody waits for.
var errMoreUses = errors.New("a forward pass used it more often than the first one of rank 0 did, which says how often it is used at most")

// begin prepares a step.
func (r *reducer) begin() {
	r.armed, r.next, r.overflow = false, 0, nil
	for _, b := range r.buckets {
		b.ready, b.work = false, nil
		r.freeze(b)
		b.begin()
		if b.table == nil {
			r.free[b.index] = append(r.free[b.index], b.spares...)
			b.spares = b.spares[:0]
		}
		if !r.cfg.Deterministic || b.table != nil {
			b.bind(b.grad)
		}
	}
}

// beginLeaf prepares a micro-batch's backward pass.
func (r *reducer) beginLeaf(arm bool) {
	r.armed = arm
	for _, b := range r.buckets {
		b.begin()
		if r.cfg.Deterministic && b.table == nil {
			if b.skipped {
				continue
			}
			b.leaf = r.take(b)
			b.bind(b.leaf)
			r.clearFrozen(b, b.leaf)
		}
	}
}

// onGrad counts down; it runs inside the backward pass.
func (r *reducer) onGrad(p *nn.Param, _, leaf int) {
	e := r.entries[p]
	if e.pending == 0 {
		panic(&nn.UseError{Param: p.Name, Err: errMoreUses})
	}
	if e.pending--; e.pending > 0 {
		return
	}
	r.settle(e)
	b := e.bucket
	if b.pending--; b.pending == 0 {
		r.full(b, leaf)
	}
}

// settle ends a leaf's part in a parameter: a use without a gradient counts as
// zero. Where leaves add up, the last one adds the later uses' slots to the
// first's, in order of use.
func (r *reducer) settle(e *entry) {
	e.pending = 0
	if e.bucket.table != nil {
		return // its slot is zero where nothing was added
	}
	kernels := r.cfg.Device.Kernels()
	first, written := e.param.Grad(0)
	if !written {
		kernels.Fill(first, 0)
	}
	for use := 1; use < e.uses; use++ {
		switch slot, written := e.param.Grad(use); {
		case !r.cfg.Deterministic && r.armed && written:
			kernels.Add(first, first, slot)
		case r.cfg.Deterministic && !written:
			kernels.Fill(slot, 0)
		}
	}
}

// full ends a leaf's part in a bucket.
func (r *reducer) full(b *bucket, leaf int) {
	if r.cfg.Deterministic && b.table != nil {
		b.table.leaf(leaf)
	} else if r.cfg.Deterministic {
		b.tree.push(node{lo: leaf, size: 1, buf: b.leaf}, func(spare device.Buf) { r.give(b, spare) })
		b.leaf = device.Buf{}
	}
	if !r.armed {
		return
	}
	b.ready = true
	if r.ready != nil {
		r.ready(b)
	}
	if !r.cfg.NoOverlap && !r.held {
		r.releaseReady()
	}
}

// releaseReady starts the calls of full buckets, strictly in the agreed order, so
// that all ranks start the same calls in the same order.
func (r *reducer) releaseReady() {
	for r.next < len(r.sequence) {
		b := r.buckets[r.sequence[r.next]]
		if !b.ready && !b.skipped {
			return
		}
		r.release(b)
		r.next++
	}
}

func (r *reducer) release(b *bucket) {
	b.flying, b.leaves = r.cfg.Defer, r.count
	if b.skipped {
		b.work = r.nothing
		return
	}
	r.scan(b)
	b.work = r.reduction.start(b)
}

// finishLeaves completes the buckets that parameters without a gradient kept
// from filling: an error that names them, or zeros with FindUnused.
func (r *reducer) finishLeaves(leaf int) error {
	for _, b := range r.buckets {
		if b.frozen && !b.skipped {
			r.full(b, leaf)
		}
		if b.pending == 0 {
			continue
		}
		if names := b.missing(); !r.cfg.FindUnused {
			return fmt.Errorf("%w for %s in micro-batch %d: the forward pass did not use them; freeze them, or set fusion.find_unused",
				errUnused, strings.Join(names, ", "), leaf)
		}
		for _, e := range b.entries {
			if e.pending > 0 {
				r.settle(e)
			}
		}
		b.pending = 0
		r.full(b, leaf)
	}
	return nil
}

// releaseAll starts what has not been started: all of it on a rank whose run is
// empty, which contributes nothing.
func (r *reducer) releaseAll(empty bool) {
	for r.next < len(r.sequence) {
		r.releaseNext(empty)
	}
}

func (r *reducer) releaseNext(empty bool) {
	b := r.buckets[r.sequence[r.next]]
	if empty && !r.cfg.Deterministic && b.table == nil {
		r.cfg.Device.Kernels().Fill(b.grad, 0)
	}
	r.release(b)
	r.next++
}

// wait returns when all buckets hold their sums.
func (r *reducer) wait(ctx context.Context) error {
	for _, b := range r.buckets {
		if r.cfg.Hook != nil && !b.skipped {
			failure, err := r.hooked(ctx, b)
			if err != nil {
				return err
			}
			if r.failure == nil {
				r.failure = failure
			}
		} else if err := b.work.Wait(ctx); err != nil {
			return err
		}
		r.landed(b)
	}
	return nil
}

// landed ends a bucket's sum.
func (r *reducer) landed(b *bucket) {
	b.foldUses()
	if r.cfg.Wire.keeps() {
		r.clearFrozen(b, b.grad) // of what was not sent before
	}
}

// take and give keep the spare leaf buffers of a bucket.
func (r *reducer) take(b *bucket) device.Buf {
	spare := r.free[b.index]
	if len(spare) == 0 {
		buf, err := r.cfg.Device.Alloc(device.F32, b.grad.Len)
		if err != nil {
			panic(&nn.UseError{Param: b.label, Err: err})
		}
		return buf
	}
	r.free[b.index] = spare[:len(spare)-1]
	return spare[len(spare)-1]
}

func (r *reducer) give(b *bucket, buf device.Buf) {
	r.free[b.index] = append(r.free[b.index], buf)
}
