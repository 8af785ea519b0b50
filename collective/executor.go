package collective

import (
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// executor runs the programs of a group's calls, one at a time. Its memory is
// reused: a call of a known shape allocates nothing here.
type executor struct {
	group    *Group
	guard    guard
	programs map[shape]*program
	newest   shape // of the last call, which the next one often resembles
	last     *program
	latest   atomic.Int64 // the latest start of the running call on any rank
	send     sender       // on the goroutine of the call
	receive  receiver
	beside   sender // on a goroutine of its own, for what may wait
	batches  chan batch
	sent     chan error
	// besideEnded is closed when the second goroutine has ended with the group.
	besideEnded chan struct{}
	pending     bool // a batch has been handed over and not come back

	sentCount, actedCount gate // elements of the running call, in program order
	shared                shared

	memory        [memories]device.Buf
	heap          heap // of Alloc
	scratch, kept []byte
	wire          []byte
	codec         Codec // of the running call
	parts         []device.Buf
}

// maxPrograms bounds what is kept for a user whose every call has a new length.
const maxPrograms = 1024

func (e *executor) init(g *Group) {
	e.group = g
	e.guard.group, e.guard.sender = g, &e.beside
	e.programs = map[shape]*program{}
	tag := g.tag(callChannel)
	sent, packing := make([]uint32, len(g.ranks)), g.newPacking() // the senders take turns
	for _, s := range []*sender{&e.send, &e.beside} {
		s.sent = sent
		s.group, s.ctx, s.tag, s.latest = g, g.ctx, tag, &e.latest
		s.packing = packing
		s.peer.Store(-1)
	}
	e.receive.init(g, g.ctx, tag, &e.latest)
	e.receive.taken = make([]uint32, len(g.ranks))
	e.receive.packing = g.newPacking()
	e.sentCount.init()
	e.actedCount.init()
	e.beside.pace.other, e.beside.pace.own = &e.actedCount, &e.sentCount
}

// run carries out a call on this goroutine.
func (e *executor) run(w *Work) error {
	c := &w.call
	if c.After != nil {
		if err := c.After.Wait(w.ctx); err != nil {
			return err
		}
	}
	now := time.Now() // a call of a microsecond notices each look at the clock
	start := now.UnixNano()
	e.latest.Store(start)
	e.group.began.Store(max(1, int64(now.Sub(e.group.made))))
	e.send.saved, e.beside.saved = 0, 0
	if err := e.group.stillOpen(w.sequence); err != nil {
		return err
	}
	if c.alloc != nil {
		if err := e.guard.begin(w, now); err != nil {
			return err
		}
		defer e.guard.end()
		return e.allocate(w)
	}
	prog, err := e.program(c)
	if err != nil {
		return err
	}
	err = e.guard.begin(w, now)
	handled := false
	if err == nil && prog.shared {
		handled, err = e.runShared(prog, w)
	}
	if err == nil && !handled {
		err = e.execute(prog, w)
	}
	e.guard.end()
	if err == nil {
		e.record(prog, c, start)
	}
	return err
}

func (e *executor) program(c *Call) (*program, error) {
	key := shapeOf(c)
	if e.last != nil && key == e.newest {
		return e.last, nil
	}
	prog, err := e.compiled(c, key)
	if err == nil {
		e.newest, e.last = key, prog
	}
	return prog, err
}

func (e *executor) compiled(c *Call, key shape) (*program, error) {
	if prog := e.programs[key]; prog != nil {
		return prog, nil
	}
	prog, err := e.group.compile(c)
	if err != nil {
		return nil, err
	}
	if len(e.programs) >= maxPrograms {
		clear(e.programs)
	}
	e.programs[key] = prog
	if prog.shared = e.shares(c, prog); prog.shared {
		prog.share(c, len(e.group.ranks))
	}
	return prog, nil
}

func (e *executor) execute(prog *program, w *Work) error {
	c := &w.call
	size := c.typ().Size()
	e.scratch, e.kept = grown(e.scratch, prog.scratch*size), grown(e.kept, prog.kept*size)
	e.wire, e.codec = grown(e.wire, prog.wire), c.Codec
	e.memory = [memories]device.Buf{c.In, c.Out, device.FromBytes(c.typ(), e.scratch), device.FromBytes(c.typ(), e.kept), device.FromU8(e.wire)}
	for _, p := range []*packing{&e.send.packing, &e.beside.packing, &e.receive.packing} {
		p.setCodec(c.Codec)
	}
	h := prog.header
	h.sequence, h.bounds = w.sequence, h.bounds+c.agree
	e.group.remember(h)
	carry := e.stream
	if prog.inline {
		carry = e.inline
	}
	if err := carry(prog, h, w); err != nil {
		return err
	}
	e.guard.waiting.Store(-1)
	if prog.divide.size() > 0 {
		Divide(e.buffer(prog.divide), len(e.group.ranks))
	}
	for _, pair := range prog.after {
		copy(e.buffer(pair[0]).Bytes(), e.buffer(pair[1]).Bytes())
	}
	return nil
}

// inline sends and acts on this goroutine, in the plan's order: no transfer
// waits for its receiver.
func (e *executor) inline(prog *program, h header, _ *Work) error {
	e.receive.pace.other, e.receive.pace.own = nil, nil
	next := 0
	for i := 0; i <= len(prog.actions); i++ {
		for ; next < len(prog.transfers) && prog.transfers[next].after == i; next++ {
			t := &prog.transfers[next]
			if err := e.send.send(t.peer, h, e.buffer(t.at), nil); err != nil {
				return err
			}
		}
		if i == len(prog.actions) {
			break
		}
		if err := e.act(h, &prog.actions[i]); err != nil {
			return err
		}
	}
	return nil
}

// stream sends on a second goroutine and acts on this one.
func (e *executor) stream(prog *program, h header, w *Work) error {
	e.sentCount.reset()
	e.actedCount.reset()
	e.receive.pace.other, e.receive.pace.own = &e.sentCount, &e.actedCount
	e.sendBeside(batch{w, h, prog.transfers})
	for i := range prog.actions {
		if err := e.act(h, &prog.actions[i]); err != nil {
			return err
		}
	}
	e.guard.waiting.Store(-1)
	return e.awaitBeside()
}

func (e *executor) buffer(r region) device.Buf { return e.memory[r.mem].Slice(r.lo, r.hi) }

func (e *executor) act(h header, a *action) error {
	switch {
	case a.kind >= beginAction:
		return e.code(a)
	case a.kind != receiveAction:
		return e.actHere(h, a)
	}
	e.guard.waiting.Store(int32(a.peer))
	in := intake{into: e.buffer(a.at), reduce: a.reduce}
	if a.opens {
		in.left, in.opens = e.buffer(a.left), true
	}
	return e.receive.receive(a.peer, h, in, a.needs)
}

// pieceSize is how many bytes are copied, reduced or folded between two looks
// at what else may go on meanwhile.
const pieceSize = 256 << 10

// actHere carries out an action without a peer, piece by piece.
func (e *executor) actHere(h header, a *action) error {
	p := &e.receive.pace
	p.needs = a.needs
	e.guard.waiting.Store(-1)
	total := a.at.size()
	step := pieceSize / h.typ.Size()
	for lo := 0; lo < total; lo += step {
		hi := min(lo+step, total)
		if err := p.ready(e.group.ctx, lo, hi); err != nil {
			return err
		}
		into := e.buffer(a.at.part(lo, hi))
		switch a.kind {
		case copyAction:
			copy(into.Bytes(), e.buffer(a.from.part(lo, hi)).Bytes())
		case reduceAction:
			e.reduce(h.op, into, e.buffer(a.from.part(lo, hi)), a, lo, hi)
		case foldAction:
			e.fold(h.op, into, a.parts, lo, hi)
		}
		p.done(hi - lo)
	}
	return nil
}

func (e *executor) reduce(op Op, into, from device.Buf, a *action, lo, hi int) {
	if !a.opens {
		e.group.reducer.Reduce(op.kernel(), into, from)
		return
	}
	e.parts = append(e.parts[:0], e.buffer(a.left.part(lo, hi)), from)
	combineInto(e.group.reducer, op, into, e.parts)
}

// fold reduces the parts that this rank has received, in rank order.
func (e *executor) fold(op Op, into device.Buf, parts []region, lo, hi int) {
	e.parts = e.parts[:0]
	for _, r := range parts {
		e.parts = append(e.parts, e.buffer(r.part(lo, hi)))
	}
	if op == Sum {
		e.group.reducer.Fold(into, e.parts)
		return
	}
	foldHalves(op, into, e.parts)
}

// settle waits, after an error that has ended the group, until nothing touches
// the call's memory any more.
func (e *executor) settle() {
	_ = e.awaitBeside()
	e.memory, e.codec = [memories]device.Buf{}, nil
}

// record notes the call's spans.
func (e *executor) record(prog *program, c *Call, start int64) {
	events := e.group.config.Events
	if events == nil {
		return
	}
	end := events.Now()
	arrived := min(max(e.latest.Load(), start), end)
	span := observe.Span{Kind: observe.CallWait, Lane: e.group.config.Name, Name: c.Label, Start: start, End: arrived}
	if span.Name == "" {
		span.Name = c.Kind.String()
	}
	events.Record(span)
	span.Kind, span.Start, span.End = observe.Call, arrived, end
	span.Bytes, span.BytesIn, span.Saved = prog.sent, prog.received, e.send.saved+e.beside.saved
	events.Record(span)
}
