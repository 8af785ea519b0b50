package parallel

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
)

// newCanonicalReduction sums buckets over the canonical tree, one after another.
// Per bucket of n elements and R ranks: an all-to-all of each rank's nodes (at most
// 2 log2 M of them) cut in R slices, a fold by each slice's owner, and an
// all-gather: n (nodes + 1) (R-1)/R elements sent by a rank.
func newCanonicalReduction(r *reducer) *queue {
	return newQueue(func(b *bucket) error { return r.reduceCanonical(r.ctx, b) })
}

// reduceCanonical leaves the sum over all leaves in b.grad on every rank, or in
// each rank's part if b.scattered.
func (r *reducer) reduceCanonical(ctx context.Context, b *bucket) error {
	spare := func(buf device.Buf) { b.spares = append(b.spares, buf) }
	ranks := r.comm.Size()
	if ranks == 1 {
		sum := b.tree.finish(spare)
		copy(b.grad.F32(), sum.F32())
		spare(sum)
		return nil
	}
	bounds := plan.Cut(b.grad.Len, ranks)
	if b.scattered() {
		bounds = b.bounds
	}
	if err := r.exchangeNodes(ctx, b, bounds, spare); err != nil {
		return err
	}
	own := r.foldSlices(b, bounds)
	lo, hi := bounds[r.comm.Rank()], bounds[r.comm.Rank()+1]
	in := b.grad.Slice(lo, hi)
	copy(in.F32(), own.F32())
	if b.scattered() {
		return nil
	}
	return r.comm.Start(ctx, collective.Call{Kind: plan.AllGather, In: in, Out: b.grad, InBounds: bounds, Label: b.label}).Wait(ctx)
}

// exchangeNodes sends every rank its slice of this rank's nodes and receives
// the own slice of everybody's: b.recvs holds, by rank and node, slices.
func (r *reducer) exchangeNodes(ctx context.Context, b *bucket, bounds []int, spare func(device.Buf)) error {
	ranks, rank := r.comm.Size(), r.comm.Rank()
	width := bounds[rank+1] - bounds[rank]
	in, out := make([]int, ranks+1), make([]int, ranks+1)
	for p := range ranks {
		lo, hi := data.Run(b.leaves, ranks, p)
		in[p+1] = in[p] + len(b.tree.nodes)*(bounds[p+1]-bounds[p])
		out[p+1] = out[p] + countNodes(lo, hi)*width
	}
	if b.sends.Len != in[ranks] {
		b.sends = device.FromF32(make([]float32, in[ranks]))
	}
	if b.recvs.Len != out[ranks] {
		b.recvs = device.FromF32(make([]float32, out[ranks]))
	}
	to, at := b.sends.F32(), 0
	for p := range ranks {
		for _, n := range b.tree.nodes {
			at += copy(to[at:], n.buf.F32()[bounds[p]:bounds[p+1]])
		}
	}
	for _, n := range b.tree.nodes {
		spare(n.buf)
	}
	b.tree.nodes = b.tree.nodes[:0]
	call := collective.Call{Kind: plan.AllToAll, In: b.sends, Out: b.recvs, InBounds: in, OutBounds: out, Label: b.label}
	return r.comm.Start(ctx, call).Wait(ctx)
}

// foldSlices folds the received slices in the order of their leaves.
func (r *reducer) foldSlices(b *bucket, bounds []int) device.Buf {
	ranks, rank := r.comm.Size(), r.comm.Rank()
	width, at := bounds[rank+1]-bounds[rank], 0
	var tree counter
	for p := range ranks {
		lo, hi := data.Run(b.leaves, ranks, p)
		nodesOf(lo, hi, func(lo, size int) {
			tree.push(node{lo, size, b.recvs.Slice(at, at+width)}, nil)
			at += width
		})
	}
	return tree.finish(nil)
}
