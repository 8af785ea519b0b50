package parallel

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// cut asks rank 0 for the order in which gradients become complete and places the
// parameters in buckets. uses is what this rank's first forward pass used; nil on a
// rank that ran none.
func (r *reducer) cut(ctx context.Context, uses []nn.Use) (err error) {
	defer func() { // half a cut is none
		if err != nil {
			r.buckets = nil
		}
	}()
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
			e.tied = r.tied[e.param]
		}
		if err := r.place(ctx, b); err != nil {
			return err
		}
	}
	if n := len(r.buckets); n > 0 && r.buckets[n-1].table != nil && r.cfg.LocalSGD == 0 {
		tables, err := newTableReduction(ctx, r)
		if err != nil {
			return err
		}
		r.reduction = tables
	}
	if r.cfg.Hook != nil {
		r.reduction = newHookReduction(r)
	}
	r.fetchLabel = labelOf(r.buckets)
	r.free = make([][]device.Buf, len(r.buckets))
	for i := range r.buckets {
		r.sequence = append(r.sequence, i)
	}
	r.opened = true
	r.begin()
	return nil
}

// moved is the size of the parameters that have moved to buckets.
func (r *reducer) moved() int {
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

// place allocates a bucket, and moves its parameters there where other ranks read or
// write them.
func (r *reducer) place(ctx context.Context, b *bucket) (err error) {
	length := b.size
	if r.cfg.Deterministic {
		length = b.placeUses()
	}
	if b.grad, err = r.allocGrad(ctx, length); err != nil {
		return fmt.Errorf("memory for %s: %w", b.label, err)
	}
	if err = r.allocValues(ctx, b); err != nil {
		return fmt.Errorf("memory for %s: %w", b.label, err)
	}
	kernels := r.cfg.Device.Kernels()
	for _, e := range b.entries {
		if !b.values.IsZero() {
			to := b.values.Slice(e.offset, e.offset+e.param.Len())
			kernels.Copy(to, e.param.Value)
			e.param.Value = to
		}
		if b.table != nil {
			b.table.grad = b.grad.Slice(0, e.param.Len())
		}
		for i := 1; i < e.uses && !r.cfg.Deterministic && b.table == nil; i++ {
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

// allocGrad gives memory that other ranks can read, where there are any.
func (r *reducer) allocGrad(ctx context.Context, n int) (device.Buf, error) {
	if r.comm.Size() == 1 {
		return r.cfg.Device.Alloc(device.F32, n)
	}
	return r.comm.Alloc(ctx, device.F32, n)
}

// allocValues gives a bucket memory for its parameters that all ranks can reach, where
// each updates a part for all, or averages it; none where they stay where they are.
func (r *reducer) allocValues(ctx context.Context, b *bucket) (err error) {
	if !r.cfg.Shard && r.cfg.LocalSGD == 0 || r.comm.Size() == 1 {
		return nil
	}
	if r.cfg.Shard {
		b.shard(r.comm.Size())
	}
	b.spreadLabel = ParametersLabel + b.label
	for _, e := range b.entries {
		e.param.Before(func() error { return r.arrived(r.ctx, b) })
	}
	if group, ok := r.comm.(*collective.Group); ok && r.cfg.Shard {
		b.values, b.copies, err = group.AllocShared(ctx, device.F32, b.size)
	} else {
		b.values, err = r.comm.Alloc(ctx, device.F32, b.size)
	}
	return err
}
