package tcp

import "fmt"

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

// handleAnswer is the peer's answer to an announcement.
func (l *link) handleAnswer(h header) error {
	if int(h.id) >= len(l.sends) || l.sends[h.id] == nil {
		return fmt.Errorf("broken stream: answer to message %d, which was not announced", h.id)
	}
	s := l.sends[h.id]
	switch {
	case s == &l.withdrawn:
		if h.kind != kindGrant {
			l.freeID(h.id)
		}
	case s.announced != (h.kind != kindDone):
		return fmt.Errorf("broken stream: untimely answer to message %d", h.id)
	case h.kind == kindDiscard:
		l.finish(s, nil)
	case h.kind == kindDone:
		if s.taken < len(s.buf) {
			return fmt.Errorf("broken stream: message %d was not sent yet", h.id)
		}
		s.delivered = true
		l.freeID(h.id)
		if s.writing == 0 {
			l.endSend(s, nil)
		}
	default:
		s.announced = false
		s.slot = uint32(h.tag)
		l.supply(s, s.ready)
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
		l.freeSlot(s)
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
