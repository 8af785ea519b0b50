package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// shared is what the executor runs calls with that need no messages.
type shared struct {
	direct Direct // nil: the transport has none
	asked  bool
	call   DirectCall
	want   header
	op     Op
	parts  []device.Buf
}

// allocation is the kind of what Alloc runs.
const allocation plan.Kind = 253

// allocated is what Alloc asks for and gets.
type allocated struct {
	typ   device.Type
	n     int
	buf   device.Buf
	ranks []device.Buf
}

// openShared asks the transport once for memory that this group shares.
func (e *executor) openShared() Direct {
	s, g := &e.shared, e.group
	if s.asked {
		return s.direct
	}
	s.asked = true
	if len(g.ranks) == 1 {
		return nil
	}
	if s.direct = g.transport.Direct(g.id, g.ranks); s.direct != nil {
		s.call.Check, s.call.Fold, s.call.Waiting = e.checkPeer, e.foldShared, &e.guard.waiting
		context.AfterFunc(g.ctx, s.direct.Abort)
	}
	return s.direct
}

// closeShared is called when nothing runs any more.
func (e *executor) closeShared() {
	if d := e.openShared(); d != nil {
		d.Close()
	}
}

// shares reports whether a call may run without messages, if it is a call that
// names no algorithm but direct, of which this is the fast form.
func (e *executor) shares(c *Call, prog *program) bool {
	if e.group.codes(c) {
		return false
	}
	switch c.Kind {
	case plan.AllReduce, plan.Reduce, plan.Broadcast, plan.AllGather, plan.ReduceScatter, plan.Barrier:
	default:
		return false
	}
	free := func(name string) bool { return name == "" || name == "auto" }
	named := c.Algorithm == "direct" || free(c.Algorithm) && (free(e.group.config.Algorithm) || prog.header.algorithm == "direct")
	return named && e.openShared() != nil
}

// runShared carries out a call on shared memory, where that can.
func (e *executor) runShared(prog *program, w *Work) (handled bool, err error) {
	c, s := &w.call, &e.shared
	h := prog.header
	h.algorithm = "direct"
	e.beginShared(h, w)
	s.call.Kind, s.call.Op, s.call.Type, s.call.Root = c.Kind, c.Op, c.typ(), c.Root
	s.call.In, s.call.Out, s.call.Parts = c.In, c.Out, prog.parted
	handled, err = s.direct.Run(&s.call)
	s.call.In, s.call.Out, s.call.Foreground = device.Buf{}, device.Buf{}, nil
	return handled, err
}

// beginShared identifies a call to the peers.
func (e *executor) beginShared(h header, w *Work) {
	s := &e.shared
	h.sequence, h.bounds, h.latest = w.sequence, h.bounds+w.call.agree, e.latest.Load()
	e.group.remember(h)
	h.encode(s.call.Head[:])
	s.want, s.op = h, w.call.Op
	s.call.Foreground = &w.waited
}

// checkPeer compares a peer's call with the own one.
func (e *executor) checkPeer(peer int, head []byte) error {
	latest, ok := e.shared.want.matches(head)
	if !ok {
		theirs, known := decodeHeader(head)
		if !known {
			return &peerFailure{peer, fmt.Errorf("it runs something unknown")}
		}
		return e.group.mismatch(e.shared.want, peer, theirs, 0, 0)
	}
	e.receive.learn(latest)
	return nil
}

// foldShared sets dst to the reduction of parts by the running call's operation.
func (e *executor) foldShared(dst device.Buf, parts []device.Buf) {
	op := e.shared.op
	half := dst.Type == device.F16 || dst.Type == device.BF16
	switch {
	case dst.Len == 0:
	case op == Sum || op == Mean && !half:
		e.group.reducer.Fold(dst, parts)
		if op == Mean {
			Divide(dst, len(parts))
		}
	default:
		FoldParts(e.group.reducer, op, dst, parts)
	}
}

// share adds what a run without messages needs.
func (p *program) share(c *Call, ranks int) {
	if p.parted = slices.Clone(c.InBounds); p.parted == nil && c.Kind.Parts() {
		p.parted = plan.Cut(p.header.count, ranks)
	}
	// What a rank writes to its peers' memory, and reads from it: the two halves of
	// an all-reduce, which is a reduce-scatter and an all-gather.
	bytes := int64(p.header.count) * int64(p.header.typ.Size()) * int64(ranks-1) / int64(ranks)
	p.sent, p.received = bytes, bytes
	switch c.Kind {
	case plan.ReduceScatter:
		p.sent = 0
	case plan.AllGather:
		p.received = 0
	}
}

// Alloc implements Comm. It is run in turn, like a call. Where no memory is
// shared, the transport is told of the buffer; that needs all of its ranks, so
// sub-groups get plain memory.
func (g *Group) Alloc(ctx context.Context, t device.Type, n int) (device.Buf, error) {
	own, _, err := g.AllocShared(ctx, t, n)
	return own, err
}

// AllocShared is Alloc that also returns what the other ranks of the group got, by
// rank, where this one can read and write it; nil where no memory is shared. Ranks
// that do so agree on when by calls, such as a Barrier before and after.
func (g *Group) AllocShared(ctx context.Context, t device.Type, n int) (own device.Buf, ranks []device.Buf, err error) {
	a := &allocated{typ: t, n: n}
	if err := g.Start(ctx, Call{Kind: allocation, In: device.Buf{Type: t}, alloc: a}).Wait(ctx); err != nil {
		return device.Buf{}, nil, err
	}
	return a.buf, a.ranks, nil
}

// allocate carries out Alloc.
func (e *executor) allocate(w *Work) (err error) {
	g, a := e.group, w.call.alloc
	if e.openShared() == nil {
		a.buf = device.FromBytes(a.typ, e.heap.take(a.n*a.typ.Size()))
		if len(g.ranks) == g.transport.Size() {
			_, err = g.transport.Register(w.ctx, a.buf)
		}
		return err
	}
	e.beginShared(g.headerOf(&w.call), w)
	if a.ranks, err = e.shared.direct.Alloc(&e.shared.call, a.typ, a.n); err == nil {
		a.buf = a.ranks[g.rank]
	}
	return err
}
