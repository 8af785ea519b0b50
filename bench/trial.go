package bench

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// trial is one operation of one size, ready to be called again and again in
// place.
type trial struct {
	comm    collective.Comm
	op      Operation
	pattern pattern
	rank    int
	parts   []int      // bounds of the ranks' parts of the whole
	memory  device.Buf // all that the trial may change
	call    collective.Call
	batch   []collective.PointToPoint // of a send-receive

	encoding *encoding  // nil: values are sent as they are
	source   device.Buf // what they are before each timed call; empty: zeros
}

// elements is how many elements of memory a vector of that length takes.
func (o Operation) elements(length int) int {
	if o.SendReceive {
		return 2 * length
	}
	return length
}

// newTrial prepares an operation in memory, which has op.elements(length)
// elements. Root is rank 0.
func newTrial(comm collective.Comm, op Operation, memory device.Buf, length int, algorithm string) *trial {
	n, me := comm.Size(), comm.Rank()
	t := &trial{comm: comm, op: op, pattern: pattern{n}, rank: me, parts: plan.Cut(length, n), memory: memory}
	if op.SendReceive {
		t.batch = []collective.PointToPoint{
			{Peer: (me + 1) % n, Buf: memory.Slice(0, length)},
			{Peer: (me + n - 1) % n, Recv: true, Buf: memory.Slice(length, 2*length)},
		}
		return t
	}
	t.call = collective.Call{Kind: op.Kind, In: memory, Algorithm: algorithm, Label: "benchmark"}
	if me != 0 && (op.Kind == plan.Gather || op.Kind == plan.Scatter) {
		t.call.In = t.own()
	}
	return t
}

// own is this rank's part of the whole.
func (t *trial) own() device.Buf { return t.memory.Slice(t.parts[t.rank], t.parts[t.rank+1]) }

// run carries the operation out.
func (t *trial) run(ctx context.Context) error {
	if t.op.SendReceive {
		return t.comm.Exchange(ctx, t.batch).Wait(ctx)
	}
	return collective.Run(ctx, t.comm, t.call)
}

// mine is what this rank holds at first.
func (t *trial) mine(i int) int { return t.pattern.value(t.rank, i) }

// fill sets the operation's input.
func (t *trial) fill() {
	switch {
	case t.op.SendReceive:
		clear(t.batch[1].Buf.Bytes())
		fill(t.batch[0].Buf, t.mine)
	case !t.op.sized():
	case t.op.Kind == plan.AllGather || t.op.Kind == plan.Gather:
		clear(t.memory.Bytes())
		lo := t.parts[t.rank]
		fill(t.own(), func(i int) int { return t.mine(lo + i) })
	default:
		fill(t.memory, t.mine)
	}
}

// right compares the result with the exact answer, over all of this rank's
// elements.
func (t *trial) right() bool {
	lo := t.parts[t.rank]
	if t.op.SendReceive {
		from := t.batch[1].Peer
		return holds(t.batch[1].Buf, func(i int) int { return t.pattern.value(from, i) }) && holds(t.batch[0].Buf, t.mine)
	}
	switch t.op.Kind {
	case plan.AllReduce:
		if t.encoding != nil {
			return t.near()
		}
		return holds(t.memory, t.pattern.sum)
	case plan.Reduce:
		return t.rank != 0 || holds(t.memory, t.pattern.sum)
	case plan.Broadcast:
		return holds(t.memory, func(i int) int { return t.pattern.value(0, i) })
	case plan.AllGather, plan.Gather:
		return t.op.Kind == plan.Gather && t.rank != 0 || t.partsHold(func(r, i int) int { return t.pattern.value(r, t.parts[r]+i) })
	case plan.ReduceScatter:
		return holds(t.own(), func(i int) int { return t.pattern.sum(lo + i) })
	case plan.Scatter:
		return holds(t.own(), func(i int) int { return t.pattern.value(0, lo+i) })
	case plan.AllToAll:
		return t.partsHold(func(r, i int) int { return t.pattern.value(r, lo+i) })
	}
	return true
}

// partsHold compares the parts of all ranks with value(rank, index in part).
func (t *trial) partsHold(value func(r, i int) int) bool {
	for r := range t.pattern.ranks {
		part := t.memory.Slice(t.parts[r], t.parts[r+1])
		if !holds(part, func(i int) int { return value(r, i) }) {
			return false
		}
	}
	return true
}
