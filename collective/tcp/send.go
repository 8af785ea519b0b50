package tcp

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
)

// sendMessage is Send on one link.
func (l *link) sendMessage(ctx context.Context, tag collective.Tag, b []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(b) <= eagerMax {
		sent, err := l.sendEager(tag, b)
		if sent || err != nil {
			return err
		}
	}
	l.mu.Lock()
	if err := l.unable(); err != nil {
		l.mu.Unlock()
		return err
	}
	s, err := l.announce(tag, b, len(b))
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.flush()
	return l.sendEnd(ctx, s)
}

// readyGrain is what parts of a message that is still being made are multiples
// of, so that receivers can lend them.
const readyGrain = 4096

// sendAsReady is SendAsReady of a large message: it is announced when a part of it
// is there, and the writer takes no more than is ready.
func (l *link) sendAsReady(ctx context.Context, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	at, err := ready(0)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if err := l.unable(); err != nil {
		l.mu.Unlock()
		return err
	}
	s, err := l.announce(tag, b, at)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.flush()
	for at < len(b) {
		n, err := ready(at)
		l.mu.Lock()
		if err != nil {
			l.giveUpSend(s, err)
		}
		if s.ended || s.giveUp != nil {
			l.mu.Unlock()
			l.flush()
			break
		}
		at = n
		l.supply(s, at)
		l.mu.Unlock()
	}
	return l.sendEnd(ctx, s)
}

// supply lets the writers take more of a message; the lock is held.
func (l *link) supply(s *send, ready int) {
	s.ready = grains(ready, len(s.buf))
	if granted := !s.announced; granted && !s.queued && s.taken < s.ready {
		l.addJob(s)
	}
}

// grains rounds what is ready of a message down, unless it is all.
func grains(ready, all int) int {
	if ready < all {
		ready -= ready % readyGrain
	}
	return ready
}

// sendEnd waits for the end of an announced message, or ctx's.
func (l *link) sendEnd(ctx context.Context, s *send) error {
	if !l.await(ctx, s.done) {
		l.mu.Lock()
		l.giveUpSend(s, ctx.Err())
		l.mu.Unlock()
		l.flush()
		<-s.done.c
	}
	err := s.err
	l.mu.Lock()
	s.buf, s.err = nil, nil
	s.next = l.spare.sends
	l.spare.sends = s
	l.mu.Unlock()
	return err
}

// unable is why nothing can be sent to the peer any more.
func (l *link) unable() error {
	if l.err != nil {
		return l.err
	}
	return l.left
}

// sendEager sends b in one frame, unless too much waits at the receiver.
func (l *link) sendEager(tag collective.Tag, b []byte) (bool, error) {
	var f *frame
	if l.sockets == nil {
		f = l.transport.pool.get(len(b))
		copy(f.b, b)
	} else {
		f = l.frame(header{kind: kindEager, tag: tag, size: uint64(len(b))}, b)
	}

	sent, err := l.offerEager(tag, f, len(b))
	if !sent {
		l.transport.pool.put(f)
	}
	return sent, err
}

// sendFilled is SendFilled to another rank.
func (l *link) sendFilled(ctx context.Context, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	table := l.transport.table
	f := l.transport.pool.get(headerLen + len(stage) + trailerLen)
	message := fill(f.b[headerLen : headerLen+len(stage)])
	h := header{kind: kindEager, tag: tag, size: uint64(len(message))}
	f.b = f.b[:headerLen+len(message)+h.trailer(table)]
	h.put(f.b)
	if h.trailer(table) > 0 {
		seal(f.b[headerLen+len(message):], message, table)
	}
	sent, err := l.offerEager(tag, f, len(message))
	if sent || err != nil {
		if err != nil {
			l.transport.pool.put(f)
		}
		return err
	}
	n := copy(stage, message)
	l.transport.pool.put(f)
	return l.sendMessage(ctx, tag, stage[:n])
}

// offerEager sends a frame with a message of size bytes, unless too much waits at the
// receiver: then the frame stays the caller's.
func (l *link) offerEager(tag collective.Tag, f *frame, size int) (bool, error) {
	l.mu.Lock()
	err := l.unable()
	if err != nil || l.credit < size+eagerCost {
		l.mu.Unlock()
		return false, err
	}
	l.credit -= size + eagerCost
	if l.sockets == nil {
		a := l.newArrival(tag)
		a.eager, a.size = f, size
		l.offer(a)
		l.mu.Unlock()
		return true, nil
	}
	l.sockets[0].out.append(l.transport, f)
	l.mu.Unlock()
	l.flush()
	return true, nil
}

// frame is a whole frame with a copy of its payload.
func (l *link) frame(h header, payload []byte) *frame {
	table := l.transport.table
	trailer := h.trailer(table)
	f := l.transport.pool.get(headerLen + len(payload) + trailer)
	h.put(f.b)
	copy(f.b[headerLen:], payload)
	if trailer > 0 {
		seal(f.b[headerLen+len(payload):], payload, table)
	}
	return f
}

// announce registers a message that waits for its receiver, of which some bytes
// are ready.
func (l *link) announce(tag collective.Tag, b []byte, ready int) (*send, error) {
	s := l.spare.sends
	if s == nil {
		s = &send{done: newEnding()}
	} else {
		l.spare.sends = s.next
	}
	*s = send{tag: tag, buf: b, ready: grains(ready, len(b)), done: s.done.again(), serial: s.serial + 1}
	if l.sockets == nil {
		s.local = true
		a := l.newArrival(tag)
		a.local, a.size = s, len(b)
		l.offer(a)
		return s, nil
	}
	if n := len(l.freeIDs); n > 0 {
		s.id = l.freeIDs[n-1]
		l.freeIDs = l.freeIDs[:n-1]
	} else if len(l.sends) < idMax {
		s.id = uint32(len(l.sends))
		l.sends = append(l.sends, nil)
	} else {
		return nil, fmt.Errorf("rank %d: %d messages to rank %d wait for their receiver", l.transport.rank, idMax, l.peer)
	}
	l.sends[s.id] = s
	s.announced = true
	head := b[:min(len(b), collective.HeadSize)]
	l.sockets[0].out.append(l.transport, l.frame(header{kind: kindAnnounce, id: s.id, tag: tag, size: uint64(len(b))}, head))
	return s, nil
}

// offer gives a message to the first receive that waits for it, or lets it wait.
func (l *link) offer(a *arrival) {
	tag := a.tag
	q := l.queue(tag)
	if r := q.receives; r != nil {
		q.removeReceive(r)
		l.match(r, a)
	} else {
		q.arrive(a)
	}
	l.dropIfEmpty(tag, q)
}

func tagOf(id uint32) collective.Tag { return collective.Tag(id) }
