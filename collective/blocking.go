package collective

import (
	"context"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// The functions of this file start one call and wait for it.

// AllReduce reduces b over all ranks, in place.
func AllReduce(ctx context.Context, c Comm, op Op, b device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.AllReduce, Op: op, In: b}).Wait(ctx)
}

// Reduce reduces b over all ranks into root's, in place; the other ranks' b is
// undefined after it.
func Reduce(ctx context.Context, c Comm, op Op, root int, b device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.Reduce, Op: op, Root: root, In: b}).Wait(ctx)
}

// Broadcast copies root's b to all ranks.
func Broadcast(ctx context.Context, c Comm, root int, b device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.Broadcast, Root: root, In: b}).Wait(ctx)
}

// AllGather fills whole with all ranks' parts, in rank order.
func AllGather(ctx context.Context, c Comm, whole, part device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.AllGather, In: part, Out: whole}).Wait(ctx)
}

// ReduceScatter reduces whole over all ranks and leaves this rank's part in
// part.
func ReduceScatter(ctx context.Context, c Comm, op Op, part, whole device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.ReduceScatter, Op: op, In: whole, Out: part}).Wait(ctx)
}

// Gather fills root's whole with all ranks' parts; whole is not needed
// elsewhere.
func Gather(ctx context.Context, c Comm, root int, whole, part device.Buf) error {
	if c.Rank() != root {
		whole = device.Buf{}
	}
	return c.Start(ctx, Call{Kind: plan.Gather, Root: root, In: part, Out: whole}).Wait(ctx)
}

// Scatter hands every rank its part of root's whole, which is not needed
// elsewhere.
func Scatter(ctx context.Context, c Comm, root int, part, whole device.Buf) error {
	if c.Rank() != root {
		whole = device.Buf{}
	}
	return c.Start(ctx, Call{Kind: plan.Scatter, Root: root, In: whole, Out: part}).Wait(ctx)
}

// AllToAll sends part i of in to rank i and receives rank i's in part i of out.
func AllToAll(ctx context.Context, c Comm, out, in device.Buf) error {
	return c.Start(ctx, Call{Kind: plan.AllToAll, In: in, Out: out}).Wait(ctx)
}

// Barrier waits until all ranks have called it.
func Barrier(ctx context.Context, c Comm) error {
	return c.Start(ctx, Call{Kind: plan.Barrier}).Wait(ctx)
}

// Send hands b to a peer, which calls Recv; it may return before that.
func Send(ctx context.Context, c Comm, peer int, b device.Buf) error {
	return c.Exchange(ctx, []PointToPoint{{Peer: peer, Buf: b}}).Wait(ctx)
}

// Recv fills b with what a peer sends.
func Recv(ctx context.Context, c Comm, peer int, b device.Buf) error {
	return c.Exchange(ctx, []PointToPoint{{Peer: peer, Recv: true, Buf: b}}).Wait(ctx)
}
