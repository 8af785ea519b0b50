package tcp

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
)

// receiveMessage is Recv on one link, or RecvInPlace when use is set.
func (l *link) receiveMessage(ctx context.Context, tag collective.Tag, b []byte, use func([]byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return l.err
	}
	q := l.queue(tag)
	if q.arrivals == nil && l.left != nil {
		defer l.mu.Unlock()
		l.dropIfEmpty(tag, q)
		return l.left
	}
	r := l.newReceive(tag, b, use)
	if a := q.arrivals; a != nil {
		q.removeArrival(a)
		l.match(r, a)
	} else {
		q.post(r)
	}
	l.dropIfEmpty(tag, q)
	l.mu.Unlock()
	l.flush()

	if !l.await(ctx, r.done) {
		l.mu.Lock()
		l.giveUpReceive(r, ctx.Err())
		l.mu.Unlock()
		<-r.done.c
	}
	err := r.err
	if r.whole != nil && err == nil {
		err = r.whole(r.buf)
	}
	if f := r.lent; f != nil {
		if err == nil {
			err = use(f.b)
		}
		l.transport.pool.put(f)
	}
	l.mu.Lock()
	r.buf, r.use, r.whole, r.lent, r.err = nil, nil, nil, nil, nil
	r.next = l.spare.receives
	l.spare.receives = r
	l.mu.Unlock()
	return err
}

func (l *link) newReceive(tag collective.Tag, b []byte, use func([]byte) error) *receive {
	r := l.spare.receives
	if r == nil {
		r = &receive{done: newEnding()}
	} else {
		l.spare.receives = r.next
	}
	*r = receive{tag: tag, buf: b, use: use, gather: r.gather, slot: -1, done: r.done.again()}
	return r
}

func (l *link) endReceive(r *receive, err error) {
	r.ended, r.err = true, err
	r.done.tell()
}

// giveUpReceive ends r with cause, or has the reader do so at once when it is
// at work on r's buffer. The lock is held.
func (l *link) giveUpReceive(r *receive, cause error) {
	switch {
	case r.ended:
	case r.posted:
		q := l.queues[r.tag]
		q.removeReceive(r)
		l.dropIfEmpty(r.tag, q)
		l.endReceive(r, cause)
	case r.filling > 0:
		if r.giveUp == nil {
			r.giveUp = cause
		}
		for _, s := range l.sockets {
			if s.in.into == r {
				_ = s.conn.SetReadDeadline(past) // a closed socket interrupts as well
			}
		}
	default:
		l.slots[r.slot].receive = nil
		l.endReceive(r, cause)
	}
}

// match brings a receive and a message together, neither of which is in a queue
// any more; a is freed. The lock is held.
func (l *link) match(r *receive, a *arrival) {
	fits, want := r.fits(a.size), len(r.buf)
	gathers := r.use != nil && len(l.sockets) > 1 && a.eager == nil // its pieces come in any order
	if gathers {                                                    // in memory that no peer may make larger than what one sends
		want = l.transport.Segment(l.peer)
		fits = a.size <= want
	}
	var err error
	if !fits {
		err = &collective.LengthError{Peer: l.peer, Tag: r.tag, Want: want, Got: a.size, Head: a.copyHead()}
	}
	switch {
	case a.eager != nil:
		switch {
		case r.use != nil:
			r.lent = a.eager
		case fits:
			copy(r.buf, a.eager.b)
			fallthrough
		default:
			l.transport.pool.put(a.eager)
		}
		l.consume(a.size)
		l.endReceive(r, err)
	case a.local != nil:
		if fits {
			copy(r.buf, a.local.buf)
		}
		l.endSend(a.local, nil)
		l.endReceive(r, err)
	case fits:
		if gathers {
			if cap(r.gather) < a.size {
				r.gather = make([]byte, a.size)
			}
			r.buf, r.whole, r.use = r.gather[:a.size], r.use, nil
		}
		l.grant(r, a.id, a.size)
	default:
		l.push(header{kind: kindDiscard, id: a.id})
		l.endReceive(r, err)
	}
	l.freeArrival(a)
}

// grant lets the sender of message id stream into r.
func (l *link) grant(r *receive, id uint32, size int) {
	free := -1
	for i := range l.slots {
		if !l.slots[i].used {
			free = i
			break
		}
	}
	if free < 0 {
		free = len(l.slots)
		l.slots = append(l.slots, slot{})
	}
	r.slot = free
	l.streams.Add(1)
	l.slots[free] = slot{used: true, receive: r, announced: id, size: size, missing: size}
	l.push(header{kind: kindGrant, id: id, tag: collective.Tag(free)})
}

// consume gives the place of an eager message back to its sender, many at once.
func (l *link) consume(size int) {
	cost := size + eagerCost
	if l.sockets == nil {
		l.credit += cost
		return
	}
	l.consumed += cost
	if l.consumed >= eagerCredit/16 {
		l.push(header{kind: kindCredit, size: uint64(l.consumed)})
		l.consumed = 0
	}
}
