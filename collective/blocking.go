package collective

import (
	"context"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// The functions of this file start one call and wait for it.

// AllReduce reduces b over all ranks, in place.
func AllReduce(ctx context.Context, c Comm, op Op, b device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.AllReduce, Op: op, In: b})
}

// Reduce reduces b over all ranks into root's, in place; the other ranks' b is
// undefined after it.
func Reduce(ctx context.Context, c Comm, op Op, root int, b device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.Reduce, Op: op, Root: root, In: b})
}

// Broadcast copies root's b to all ranks.
func Broadcast(ctx context.Context, c Comm, root int, b device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.Broadcast, Root: root, In: b})
}

// AllGather fills whole with all ranks' parts, in rank order.
func AllGather(ctx context.Context, c Comm, whole, part device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.AllGather, In: part, Out: whole})
}

// ReduceScatter reduces whole over all ranks and leaves this rank's part in
// part.
func ReduceScatter(ctx context.Context, c Comm, op Op, part, whole device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.ReduceScatter, Op: op, In: whole, Out: part})
}

// Gather fills root's whole with all ranks' parts; whole is not needed
// elsewhere.
func Gather(ctx context.Context, c Comm, root int, whole, part device.Buf) error {
	if c.Rank() != root {
		whole = device.Buf{}
	}
	return Run(ctx, c, Call{Kind: plan.Gather, Root: root, In: part, Out: whole})
}

// Scatter hands every rank its part of root's whole, which is not needed
// elsewhere.
func Scatter(ctx context.Context, c Comm, root int, part, whole device.Buf) error {
	if c.Rank() != root {
		whole = device.Buf{}
	}
	return Run(ctx, c, Call{Kind: plan.Scatter, Root: root, In: whole, Out: part})
}

// AllToAll sends part i of in to rank i and receives rank i's in part i of out.
func AllToAll(ctx context.Context, c Comm, out, in device.Buf) error {
	return Run(ctx, c, Call{Kind: plan.AllToAll, In: in, Out: out})
}

// Barrier waits until all ranks have called it.
func Barrier(ctx context.Context, c Comm) error {
	return Run(ctx, c, Call{Kind: plan.Barrier})
}

// Send hands b to a peer, which calls Recv; it may return before that.
func Send(ctx context.Context, c Comm, peer int, b device.Buf) error {
	return c.Exchange(ctx, []PointToPoint{{Peer: peer, Buf: b}}).Wait(ctx)
}

// Recv fills b with what a peer sends.
func Recv(ctx context.Context, c Comm, peer int, b device.Buf) error {
	return c.Exchange(ctx, []PointToPoint{{Peer: peer, Recv: true, Buf: b}}).Wait(ctx)
}

// Run starts any call and waits for it. That takes less than Start and Wait, as
// no other goroutine need be woken to run it.
func Run(ctx context.Context, comm Comm, c Call) error {
	if g, ours := comm.(*Group); ours {
		return g.run(ctx, &c)
	}
	return comm.Start(ctx, c).Wait(ctx)
}
