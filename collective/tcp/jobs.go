package tcp

// addJob queues the rest of a granted message. link.mu is held.
func (l *link) addJob(s *send) {
	s.next, s.queued = nil, true
	if l.jobs == nil {
		l.jobs = s
	} else {
		l.final.next = s
	}
	l.final = s
	l.hasJobs.Store(true)
	for _, socket := range l.sockets {
		socket.out.wake()
	}
}

// removeJob takes a message off the queue, if it is there. link.mu is held.
func (l *link) removeJob(s *send) {
	if !s.queued {
		return
	}
	var before *send
	for at := l.jobs; at != nil; before, at = at, at.next {
		if at != s {
			continue
		}
		if before == nil {
			l.jobs = s.next
		} else {
			before.next = s.next
		}
		if l.final == s {
			l.final = before
		}
		break
	}
	s.next, s.queued = nil, false
	l.hasJobs.Store(l.jobs != nil)
}

// endSend ends s. link.mu is held.
func (l *link) endSend(s *send, err error) {
	s.ended, s.err = true, err
	s.serial++
	s.done.tell()
}

// finish ends s, whose id may be used again.
func (l *link) finish(s *send, err error) {
	l.freeID(s.id)
	l.endSend(s, err)
}

func (l *link) freeID(id uint32) {
	l.sends[id] = nil
	l.freeIDs = append(l.freeIDs, id)
}

// giveUpSend ends s with cause, or has the writers do so at once when they are
// at work on s's memory. link.mu is held.
func (l *link) giveUpSend(s *send, cause error) {
	switch {
	case s.ended || s.giveUp != nil:
	case s.local:
		q := l.queues[s.tag]
		for a := q.arrivals; a != nil; a = a.next {
			if a.local == s {
				q.removeArrival(a)
				l.freeArrival(a)
				break
			}
		}
		l.dropIfEmpty(s.tag, q)
		l.endSend(s, cause)
	case s.announced:
		// A grant may be under way: the id stays taken until the peer answers.
		l.sends[s.id] = &l.withdrawn
		l.push(header{kind: kindWithdraw, id: s.id})
		l.endSend(s, cause)
	default:
		l.removeJob(s)
		s.giveUp = cause
		if !s.delivered {
			l.sends[s.id] = &l.withdrawn
			l.push(abort(s))
		}
		if s.writing == 0 {
			l.endSend(s, cause)
			return
		}
		for _, socket := range l.sockets {
			if socket.out.current == s {
				_ = socket.conn.SetWriteDeadline(past) // a closed socket interrupts as well
			}
		}
	}
}

func abort(s *send) header {
	return header{kind: kindAbort, id: s.slot, tag: tagOf(s.id), size: uint64(s.taken)}
}
