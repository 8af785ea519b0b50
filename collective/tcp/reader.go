package tcp

import "fmt"

// begin decides where the payload of a frame goes.
func (s *socket) begin() error {
	in, l := &s.in, s.link
	in.phase, in.at, in.filled, in.sum = phasePayload, 0, 0, 0
	switch in.h.kind {
	case kindEager:
		n := int(in.h.size)
		l.mu.Lock()
		defer l.mu.Unlock()
		if q := l.queues[in.h.tag]; q != nil && q.receives != nil && q.receives.fits(n) {
			r := q.receives
			q.removeReceive(r)
			l.dropIfEmpty(in.h.tag, q)
			r.filling++
			in.into, in.base = r, 0
		} else {
			in.eager = l.transport.pool.get(n)
		}
	case kindAnnounce:
		in.small = in.message[:in.h.payload()]
	case kindData:
		l.mu.Lock()
		defer l.mu.Unlock()
		slot, err := l.slotOf(in.h)
		if err != nil {
			return err
		}
		offset := uint64(in.h.tag)
		if offset > uint64(slot.size) || in.h.size > uint64(slot.size)-offset {
			return fmt.Errorf("broken stream: %d bytes at %d of a message of %d", in.h.size, offset, slot.size)
		}
		if slot.receive != nil {
			slot.receive.filling++
		}
		in.into, in.base = slot.receive, int(offset)
	}
	return nil
}

// complete handles a frame whose bytes are all there; they are not all the
// sender's when it is not intact.
func (s *socket) complete(intact bool) error {
	in, l := &s.in, s.link
	if err := s.out.acknowledge(l.transport, in.h.ack); err != nil {
		return err
	}
	if in.h.kind == kindEager && in.into != nil && in.into.use != nil {
		s.lendOut()
	}
	if err := l.handle(s, intact); err != nil {
		return err
	}
	in.phase, in.used, in.eager, in.small = phaseHeader, 0, nil, nil
	if in.h.kind != kindAck {
		s.out.noteHandled(in.handled.Add(1))
	}
	s.flush()
	if s.index != 0 {
		l.flush()
	}
	return nil
}

func (l *link) handle(s *socket, intact bool) error {
	h := s.in.h
	switch h.kind {
	case kindGoodbye:
		l.leave(int(h.tag) - 1)
		l.push(header{kind: kindFarewell})
		return nil
	case kindFarewell:
		l.part()
		return nil
	case kindAck:
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h.kind {
	case kindEager:
		l.handleEager(s)
	case kindData, kindVoid:
		return l.handleData(s, intact && h.kind == kindData)
	case kindAnnounce:
		a := l.newArrival(h.tag)
		a.id, a.size = h.id, int(h.size)
		copy(a.head[:], s.in.small)
		l.offer(a)
	case kindGrant, kindDiscard, kindDone:
		return l.handleAnswer(h)
	case kindWithdraw:
		l.handleWithdraw(h.id)
	case kindAbort:
		return l.handleAbort(h)
	case kindCredit:
		l.credit += int(h.size)
	}
	return nil
}

func (l *link) handleEager(s *socket) {
	in := &s.in
	if in.eager == nil { // it went to its receiver, who may have given up
		if r := in.into; r != nil {
			in.into = nil
			r.filling--
			l.endReceive(r, r.giveUp)
		}
		l.consume(int(in.h.size))
		return
	}
	a := l.newArrival(in.h.tag)
	a.eager, a.size = in.eager, int(in.h.size)
	l.offer(a)
}

// handleData counts bytes that have come, or never will when they are not intact.
func (l *link) handleData(s *socket, intact bool) error {
	h := s.in.h
	if s.in.into != nil {
		l.letGo(s)
	}
	slot, err := l.slotOf(h)
	if err != nil {
		return err
	}
	slot.missing -= int(h.size)
	if r := slot.receive; r != nil && !intact {
		slot.receive = nil
		l.giveUpReceive(r, l.gaveUp())
	}
	l.settle(slot)
	return nil
}

// handleAbort: of a message only size bytes come.
func (l *link) handleAbort(h header) error {
	if int(h.id) >= len(l.slots) {
		return fmt.Errorf("broken stream: slot %d aborted, which was not granted", h.id)
	}
	slot := &l.slots[h.id]
	if !slot.used || slot.announced != uint32(h.tag) {
		return nil // all of it had come
	}
	cut := slot.size - int(h.size)
	if cut < 0 || cut > slot.missing {
		return fmt.Errorf("broken stream: slot %d aborted at %d of %d bytes", h.id, h.size, slot.size)
	}
	slot.size -= cut
	slot.missing -= cut
	if r := slot.receive; r != nil {
		slot.receive = nil
		l.giveUpReceive(r, l.gaveUp())
	}
	l.settle(slot)
	return nil
}

func (l *link) gaveUp() error {
	return l.lost(fmt.Errorf("rank %d gave up sending the message", l.peer))
}

// settle ends a granted message when nothing is missing and nobody fills it.
func (l *link) settle(granted *slot) {
	r := granted.receive
	if granted.missing > 0 || r != nil && r.filling > 0 {
		return
	}
	l.push(header{kind: kindDone, id: granted.announced})
	l.freeSlot(granted)
	if r != nil {
		l.endReceive(r, nil)
	}
}

func (l *link) freeSlot(s *slot) {
	*s = slot{}
	l.streams.Add(-1)
}

// letGo ends a reader's work on the memory of its receive, which ends when it
// had been given up and this was the last reader.
func (l *link) letGo(s *socket) {
	r := s.in.into
	s.in.into = nil
	r.filling--
	if r.giveUp == nil || r.ended {
		return
	}
	if r.slot >= 0 && l.slots[r.slot].receive == r {
		l.slots[r.slot].receive = nil
	}
	if r.filling == 0 {
		l.endReceive(r, r.giveUp)
	}
}

// rollBack forgets the part of a frame that had come when the connection broke:
// the peer sends the frame again.
func (s *socket) rollBack() {
	in, l := &s.in, s.link
	in.from, in.to, in.filled = 0, 0, 0
	if in.phase == phaseHeader {
		return
	}
	in.phase = phaseHeader
	if in.eager != nil {
		l.transport.pool.put(in.eager)
		in.eager = nil
	}
	in.small = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	r := in.into
	if r == nil {
		return
	}
	l.letGo(s)
	if in.h.kind == kindEager && !r.ended {
		l.queue(r.tag).postFirst(r)
	}
}
