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
	latest   atomic.Int64 // the latest start of the running call on any rank
	send     sender       // on the goroutine of the call
	receive  receiver
	beside   sender // on a goroutine of its own, for what may wait
	batches  chan batch
	sent     chan error
	pending  bool // a batch has been handed over and not come back

	shared shared

	memory        [memories]device.Buf
	scratch, kept []byte
	parts         []device.Buf
}

// maxPrograms bounds what is kept for a user whose every call has a new length.
const maxPrograms = 1024

// batch is the sends of a round.
type batch struct {
	work   *Work
	header header
	sends  []transfer
}

func (e *executor) init(g *Group) {
	e.group = g
	e.guard.group, e.guard.sender = g, &e.beside
	e.programs = map[shape]*program{}
	tag := g.tag(callChannel)
	sent := make([]uint32, len(g.ranks)) // the senders take turns
	for _, s := range []*sender{&e.send, &e.beside} {
		s.sent = sent
		s.group, s.ctx, s.tag, s.latest = g, g.ctx, tag, &e.latest
		s.peer.Store(-1)
	}
	e.receive.init(g, g.ctx, tag, &e.latest)
	e.receive.taken = make([]uint32, len(g.ranks))
}

// run carries out a call on this goroutine.
func (e *executor) run(w *Work) error {
	c := &w.call
	if c.After != nil {
		if err := c.After.Wait(w.ctx); err != nil {
			return err
		}
	}
	start := time.Now().UnixNano()
	e.latest.Store(start)
	if err := e.group.stillOpen(w.sequence); err != nil {
		return err
	}
	if c.alloc != nil {
		if err := e.guard.begin(w); err != nil {
			return err
		}
		defer e.guard.end()
		return e.allocate(w)
	}
	prog, err := e.program(c)
	if err != nil {
		return err
	}
	err = e.guard.begin(w)
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
	e.memory = [memories]device.Buf{c.In, c.Out, device.FromBytes(c.typ(), e.scratch), device.FromBytes(c.typ(), e.kept)}
	e.copy(prog.before)
	h := prog.header
	h.sequence, h.bounds = w.sequence, h.bounds+c.agree
	e.group.remember(h)
	for i := range prog.steps {
		s := &prog.steps[i]
		if s.fold {
			e.fold(prog, c)
			continue
		}
		if err := e.round(w, h, s); err != nil {
			return err
		}
	}
	if prog.divide.hi > prog.divide.lo {
		divide(e.buffer(prog.divide), len(e.group.ranks))
	}
	e.copy(prog.after)
	return nil
}

// round sends and receives what the round asks of this rank. Sends that wait
// for nobody go first, on this goroutine; a round with others hands its sends
// to a second goroutine. Both follow the round's order, which all ranks share,
// so the first unfinished move of all can always proceed: there is no deadlock.
func (e *executor) round(w *Work, h header, s *step) error {
	e.copy(s.keep)
	if s.large {
		e.sendBeside(batch{w, h, s.sends})
	} else {
		for i := range s.sends {
			t := &s.sends[i]
			if err := e.send.send(t.peer, h, e.buffer(t.at).Bytes(), t.reduce); err != nil {
				return err
			}
		}
	}
	for i := range s.receives {
		t := &s.receives[i]
		if t.peer == e.group.rank {
			e.move(h, t)
			continue
		}
		e.guard.waiting.Store(int32(t.peer))
		if err := e.receive.receive(t.peer, h, e.buffer(t.at), t.reduce); err != nil {
			return err
		}
	}
	e.guard.waiting.Store(-1)
	return e.awaitBeside()
}

// move carries out a move from this rank to itself.
func (e *executor) move(h header, t *transfer) {
	into, from := e.buffer(t.at), e.buffer(t.from)
	switch {
	case into.Len == 0:
	case t.reduce:
		e.group.reducer.Reduce(h.op.kernel(), into, from)
	default:
		copy(into.Bytes(), from.Bytes())
	}
}

func (e *executor) buffer(r region) device.Buf { return e.memory[r.mem].Slice(r.lo, r.hi) }

func (e *executor) copy(pairs [][2]region) {
	for _, pair := range pairs {
		copy(e.buffer(pair[0]).Bytes(), e.buffer(pair[1]).Bytes())
	}
}

// fold reduces the parts that this rank has received, in rank order.
func (e *executor) fold(prog *program, c *Call) {
	e.parts = e.parts[:0]
	for _, r := range prog.parts {
		e.parts = append(e.parts, e.buffer(r))
	}
	into := e.buffer(prog.fold)
	switch {
	case into.Len == 0:
	case c.Op == Sum:
		e.group.reducer.Fold(into, e.parts)
	default:
		foldHalves(c.Op, into, e.parts)
	}
}

// sendBeside hands a round's sends to the second goroutine, which starts with
// the first large round.
func (e *executor) sendBeside(b batch) {
	if e.batches == nil {
		e.batches, e.sent = make(chan batch, 1), make(chan error, 1)
		e.group.owned.Go(e.besideLoop)
	}
	e.pending = true
	e.batches <- b
}

// besideLoop ends with the group, after a batch that has been handed over.
func (e *executor) besideLoop() {
	for {
		select {
		case b := <-e.batches:
			e.sent <- e.sendAll(b)
		case <-e.group.ctx.Done():
			select {
			case b := <-e.batches:
				e.sent <- e.sendAll(b)
			default:
			}
			return
		}
	}
}

// sendAll sends a batch. Its error ends the group at once, because the call
// may wait for something that will never come.
func (e *executor) sendAll(b batch) error {
	for i := range b.sends {
		t := &b.sends[i]
		if err := e.beside.send(t.peer, b.header, e.buffer(t.at).Bytes(), t.reduce); err != nil {
			return e.group.fail(b.work, err)
		}
	}
	return nil
}

func (e *executor) awaitBeside() error {
	if !e.pending {
		return nil
	}
	e.pending = false
	return <-e.sent
}

// settle waits, after an error that has ended the group, until nothing touches
// the call's memory any more.
func (e *executor) settle() {
	_ = e.awaitBeside()
	e.memory = [memories]device.Buf{}
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
	span.Bytes, span.BytesIn = prog.sent, prog.received
	events.Record(span)
}
