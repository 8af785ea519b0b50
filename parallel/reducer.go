package parallel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// reducer sums the gradients of one stage over the ranks of its Comm.
type reducer struct {
	ctx    context.Context // ends with the GradFusion that owns the reducer
	cfg    FusionConfig
	comm   collective.Comm
	params []*nn.Param // trainable, in the model's order

	buckets []*bucket // nil until cut
	entries map[*nn.Param]*entry
	free    [][]device.Buf // deterministic: spare leaf buffers per bucket

	armed bool // buckets are released as they fill
	next  int  // first bucket that has not been released
	lo    int  // this rank's run of leaves
	hi    int
	count int // leaves of the step, over all ranks

	canonical *canonicalReducer // deterministic
}

// errUnused explains a bucket that never became full.
var errUnused = errors.New("no gradient arrived")

// errMoreUses explains a delivery that nobody waits for.
var errMoreUses = errors.New("a forward pass used it more often than the first one of rank 0 did, which says how often it is used at most")

// cut asks rank 0 for the order in which gradients become complete, places the
// parameters in buckets and moves their masters into flat memory. uses is what
// this rank's first forward pass used; nil on a rank that ran none.
func (r *reducer) cut(ctx context.Context, uses []nn.Use) error {
	order := make([]int32, 2*len(r.params))
	if r.comm.Rank() == 0 {
		r.order(order, uses)
	}
	call := collective.Call{Kind: plan.Broadcast, In: device.FromI32(order), Label: "order of gradients"}
	if err := r.comm.Start(ctx, call).Wait(ctx); err != nil {
		return fmt.Errorf("agreeing on the order of gradients: %w", err)
	}
	n := len(r.params)
	params := make([]*nn.Param, n)
	for i, k := range order[:n] {
		params[i] = r.params[k]
	}
	r.buckets = cutBuckets(params, r.cfg.firstBytes(), r.cfg.thresholdBytes())
	r.entries = make(map[*nn.Param]*entry, n)
	for _, b := range r.buckets {
		for _, e := range b.entries {
			r.entries[e.param] = e
			e.uses = int(order[n+slices.Index(r.params, e.param)])
		}
		if err := r.place(ctx, b); err != nil {
			return err
		}
	}
	r.free = make([][]device.Buf, len(r.buckets))
	r.begin()
	return nil
}

// bytes is the size of all buckets.
func (r *reducer) bytes() int {
	n := 0
	for _, b := range r.buckets {
		n += b.values.Size()
	}
	return n
}

// order fills the first half of out with indices of parameters in the order in
// which a backward pass over uses completes them, those without a use last,
// and the second half with how often each is used.
func (r *reducer) order(out []int32, uses []nn.Use) {
	index := make(map[*nn.Param]int, len(r.params))
	for i, p := range r.params {
		index[p] = i
	}
	n, at := len(r.params), 0
	for i := len(uses) - 1; i >= 0; i-- {
		k, trainable := index[uses[i].Param]
		if !trainable {
			continue
		}
		out[n+k]++
		if uses[i].Index == 0 {
			out[at] = int32(k)
			at++
		}
	}
	for k := range r.params {
		if out[n+k] == 0 {
			out[at], out[n+k] = int32(k), 1
			at++
		}
	}
}

// place allocates a bucket and moves its parameters there.
func (r *reducer) place(ctx context.Context, b *bucket) (err error) {
	if b.grad, err = r.comm.Alloc(ctx, device.F32, b.size); err != nil {
		return fmt.Errorf("memory for %s: %w", b.label, err)
	}
	if b.values, err = r.cfg.Device.Alloc(device.F32, b.size); err != nil {
		return fmt.Errorf("memory for %s: %w", b.label, err)
	}
	kernels := r.cfg.Device.Kernels()
	for _, e := range b.entries {
		to := b.values.Slice(e.offset, e.offset+e.param.Len())
		kernels.Copy(to, e.param.Value)
		e.param.Value = to
		for range e.uses - 1 {
			x, err := r.cfg.Device.Alloc(device.F32, e.param.Len())
			if err != nil {
				return fmt.Errorf("memory for %s: %w", e.param.Name, err)
			}
			e.extras = append(e.extras, x)
		}
		e.param.OnGrad(r.onGrad)
	}
	return nil
}

// begin prepares a step.
func (r *reducer) begin() {
	r.armed, r.next = false, 0
	for _, b := range r.buckets {
		b.ready, b.work = false, nil
		r.free[b.index] = append(r.free[b.index], b.spares...)
		b.spares = b.spares[:0]
		b.begin()
		if !r.cfg.Deterministic {
			b.bind(b.grad)
		}
	}
}

// beginLeaf prepares a micro-batch's backward pass.
func (r *reducer) beginLeaf(arm bool) {
	r.armed = arm
	for _, b := range r.buckets {
		b.begin()
		if r.cfg.Deterministic {
			b.leaf = r.take(b)
			b.bind(b.leaf)
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

// settle ends a leaf's part in a parameter: a first use without a gradient
// counts as zero, and the last leaf that adds to the later uses' slots adds these
// to the first's, in order of use.
func (r *reducer) settle(e *entry) {
	e.pending = 0
	first, written := e.param.Grad(0)
	if !written {
		r.cfg.Device.Kernels().Fill(first, 0)
	}
	if !r.armed && !r.cfg.Deterministic {
		return
	}
	for i, x := range e.extras {
		if _, ok := e.param.Grad(i + 1); ok {
			r.cfg.Device.Kernels().Add(first, first, x)
		}
	}
}

// full ends a leaf's part in a bucket.
func (r *reducer) full(b *bucket, leaf int) {
	if r.cfg.Deterministic {
		b.tree.push(node{lo: leaf, size: 1, buf: b.leaf}, func(spare device.Buf) { r.give(b, spare) })
		b.leaf = device.Buf{}
	}
	if !r.armed {
		return
	}
	b.ready = true
	if !r.cfg.NoOverlap {
		r.releaseReady()
	}
}

// releaseReady starts the calls of full buckets, strictly in bucket order, so
// that all ranks start the same calls in the same order.
func (r *reducer) releaseReady() {
	for r.next < len(r.buckets) && r.buckets[r.next].ready {
		r.release(r.buckets[r.next])
		r.next++
	}
}

func (r *reducer) release(b *bucket) {
	if r.cfg.Deterministic {
		b.work = r.canonical.start(r, b)
		return
	}
	b.work = r.comm.Start(r.ctx, collective.Call{Kind: plan.AllReduce, In: b.grad, Label: b.label})
}

// finishLeaves completes the buckets that parameters without a gradient kept
// from filling: an error that names them, or zeros with FindUnused.
func (r *reducer) finishLeaves(leaf int) error {
	for _, b := range r.buckets {
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
	for _, b := range r.buckets[r.next:] {
		if empty && !r.cfg.Deterministic {
			r.cfg.Device.Kernels().Fill(b.grad, 0)
		}
		r.release(b)
	}
	r.next = len(r.buckets)
}

// wait returns when all buckets hold their sums.
func (r *reducer) wait(ctx context.Context) error {
	for _, b := range r.buckets {
		if err := b.work.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take and give keep the spare leaf buffers of a bucket.
func (r *reducer) take(b *bucket) device.Buf {
	spare := r.free[b.index]
	if len(spare) == 0 {
		buf, err := r.cfg.Device.Alloc(device.F32, b.size)
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
