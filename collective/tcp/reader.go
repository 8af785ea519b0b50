package tcp

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/gradfusion/gradfusion/collective"
)

// readLoop handles frames until the stream ends.
func (l *link) readLoop() {
	var err error
	for err == nil {
		if err = l.fill(l.in.head[:]); err != nil {
			break
		}
		var h header
		if h, err = parseHeader(l.in.head[:]); err != nil {
			break
		}
		err = l.handle(h)
		l.flush()
	}
	l.end(err)
}

// end says what the end of the stream means.
func (l *link) end(err error) {
	l.mu.Lock()
	left := l.left != nil
	l.mu.Unlock()
	if !left {
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("its connection ended without a goodbye (has its process died?)")
		case errors.Is(err, syscall.ECONNRESET):
			err = fmt.Errorf("its connection was reset (has its process died?): %w", syscall.ECONNRESET)
		}
		l.transport.fail(l.peer, err)
	}
	l.part()
}

func (l *link) handle(h header) error {
	switch h.kind {
	case kindEager:
		return l.handleEager(h)
	case kindData:
		return l.handleData(h)
	case kindAnnounce:
		return l.handleAnnounce(h)
	case kindGoodbye:
		l.leave(int(h.tag) - 1)
		l.push(header{kind: kindFarewell})
		return nil
	case kindFarewell:
		l.part()
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h.kind {
	case kindGrant, kindDiscard:
		return l.handleAnswer(h)
	case kindWithdraw:
		l.handleWithdraw(h.id)
	case kindAbort:
		s, err := l.slotOf(h)
		if err != nil {
			return err
		}
		if s.receive != nil {
			l.endReceive(s.receive, l.lost(fmt.Errorf("rank %d gave up sending the message", l.peer)))
		}
		*s = slot{}
	case kindCredit:
		l.credit += int(h.size)
	}
	return nil
}

func (l *link) handleAnnounce(h header) error {
	if err := l.fill(l.in.messageHead[:min(h.size, collective.HeadSize)]); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.newArrival(h.tag)
	a.id, a.size, a.head = h.id, int(h.size), l.in.messageHead
	l.offer(a)
	return nil
}

// handleAnswer is the peer's answer to an announcement.
func (l *link) handleAnswer(h header) error {
	if int(h.id) >= len(l.sends) || l.sends[h.id] == nil {
		return fmt.Errorf("broken stream: answer to message %d, which was not announced", h.id)
	}
	s := l.sends[h.id]
	switch {
	case s == &l.withdrawn:
		if h.kind == kindDiscard {
			l.freeID(h.id)
		}
	case !s.announced:
		return fmt.Errorf("broken stream: second answer to message %d", h.id)
	case h.kind == kindDiscard:
		l.finish(s, nil)
	default:
		s.announced = false
		s.slot = uint32(h.tag)
		if l.out.addJob(s) {
			l.out.kick <- struct{}{}
		}
	}
	return nil
}

// handleWithdraw takes an announcement back and says so, unless the message was
// discarded before, which is the answer as well.
func (l *link) handleWithdraw(id uint32) {
	for tag, q := range l.queues {
		for a := q.arrivals; a != nil; a = a.next {
			if a.eager == nil && a.id == id {
				q.removeArrival(a)
				l.freeArrival(a)
				l.dropIfEmpty(tag, q)
				l.push(header{kind: kindDiscard, id: id})
				return
			}
		}
	}
	for i := range l.slots {
		s := &l.slots[i]
		if !s.used || s.announced != id || s.missing != s.size {
			continue
		}
		r := s.receive
		*s = slot{}
		l.push(header{kind: kindDiscard, id: id})
		if r != nil {
			l.repost(r)
		}
		return
	}
}

// repost puts a receive whose message was taken back where it was: first.
func (l *link) repost(r *receive) {
	r.slot = -1
	q := l.queue(r.tag)
	if a := q.arrivals; a != nil {
		q.removeArrival(a)
		l.match(r, a)
	} else {
		q.postFirst(r)
	}
	l.dropIfEmpty(r.tag, q)
}

func (l *link) slotOf(h header) (*slot, error) {
	if int(h.id) >= len(l.slots) || !l.slots[h.id].used {
		return nil, fmt.Errorf("broken stream: bytes for slot %d, which was not granted", h.id)
	}
	s := &l.slots[h.id]
	if h.size > uint64(s.missing) {
		return nil, fmt.Errorf("broken stream: %d bytes for slot %d, which lacks %d", h.size, h.id, s.missing)
	}
	return s, nil
}

func (l *link) handleEager(h header) error {
	n := int(h.size)
	l.mu.Lock()
	if q := l.queues[h.tag]; q != nil && q.receives != nil && len(q.receives.buf) == n {
		r := q.receives
		q.removeReceive(r)
		l.dropIfEmpty(h.tag, q)
		l.in.current = r
		l.mu.Unlock()
		err := l.deliver(0, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		if r := l.in.current; r != nil {
			l.in.current = nil
			l.endReceive(r, nil)
		}
		l.consume(n)
		return err
	}
	l.mu.Unlock()
	f := l.transport.pool.get(n)
	if err := l.fill(f.b); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.newArrival(h.tag)
	a.eager, a.size = f, n
	l.offer(a)
	return nil
}

func (l *link) handleData(h header) error {
	n := int(h.size)
	l.mu.Lock()
	s, err := l.slotOf(h)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	// While the reader fills its buffer the receive belongs to the reader.
	l.in.current, s.receive = s.receive, nil
	offset := s.size - s.missing
	l.mu.Unlock()
	err = l.deliver(offset, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.in.current
	l.in.current = nil
	s = &l.slots[h.id] // the slice may have grown
	s.missing -= n
	if r != nil && s.missing > 0 && r.giveUp != nil {
		l.endReceive(r, r.giveUp)
		r = nil
	}
	s.receive = r
	if s.missing == 0 {
		if r != nil {
			l.endReceive(r, nil)
		}
		*s = slot{}
	}
	return err
}
