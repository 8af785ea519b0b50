//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
)

// maxAnnounced is how many large messages to one peer may wait.
const maxAnnounced = 1 << 20

// Send sends b to rank to. Of a cancelled large message that had begun to flow
// the receiver gets a *collective.LinkError, and the link lives on.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if to < 0 || to >= t.size {
		return fmt.Errorf("rank %d: send to rank %d of %d", t.rank, to, t.size)
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	l := t.links[to]
	if to == t.rank {
		return l.sendSelf(ctx, tag, b)
	}
	if len(b) <= collective.EagerSize {
		if sent, err := l.sendEager(tag, b); sent || err != nil {
			return err
		}
	}
	s, err := l.announce(tag, b)
	if err != nil {
		return err
	}
	if t.await(ctx, &s.ended, s.done) {
		l.cancelSend(s, ctx.Err())
		<-s.done
	}
	return s.err
}

// unable is why nothing can be sent any more; out.mu is held.
func (o *outgoing) unable() error {
	if o.err != nil {
		return o.err
	}
	return o.left
}

// sendEager sends b at once, unless too much waits at the receiver.
func (l *link) sendEager(tag collective.Tag, b []byte) (bool, error) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if err := l.out.unable(); err != nil {
		return false, err
	}
	cost := uint64(len(b) + eagerCost)
	if l.out.eager+cost > l.out.ring.consumed.Load()+eagerCredit {
		return false, nil
	}
	l.out.eager += cost
	l.emit(frame{kind: frameEager, tag: tag, size: len(b)}, b)
	return true, nil
}

// emit writes a frame or queues a copy of it; out.mu is held.
func (l *link) emit(f frame, b []byte) {
	o := &l.out
	if o.waiting.empty() && o.ring.write(f, b) {
		l.transport.notify(l.peer)
		return
	}
	kept := l.transport.buffers.get(len(b))
	copy(kept.b, b)
	o.waiting.push(&queued{f, kept})
	l.flush()
}

// answer sends a frame without bytes, from the receiving side.
func (l *link) answer(f frame) {
	l.out.mu.Lock()
	if l.out.unable() == nil {
		l.emit(f, nil)
	}
	l.out.mu.Unlock()
}

// announce tells the peer of a message that waits for its receiver.
func (l *link) announce(tag collective.Tag, b []byte) (*send, error) {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.unable(); err != nil {
		return nil, err
	}
	s := &send{tag: tag, b: b, done: make(chan struct{}, 1)}
	if n := len(o.free); n > 0 {
		s.id = o.free[n-1]
		o.free = o.free[:n-1]
	} else if len(o.sends) < maxAnnounced {
		s.id = uint32(len(o.sends))
		o.sends = append(o.sends, nil)
	} else {
		return nil, fmt.Errorf("rank %d: %d messages to rank %d wait for their receiver", l.transport.names[l.transport.rank], maxAnnounced, l.name())
	}
	o.sends[s.id] = s
	l.emit(frame{kind: frameAnnounce, id: s.id, tag: tag, size: len(b)}, b[:min(len(b), collective.HeadSize)])
	return s, nil
}

// handleAnswer is the peer's answer to an announcement; in.mu is held.
func (l *link) handleAnswer(f frame) error {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if int(f.id) >= len(o.sends) || o.sends[f.id] == nil {
		return fmt.Errorf("broken ring: answer to message %d, which was not announced", f.id)
	}
	s := o.sends[f.id]
	switch {
	case s == withdrawn:
		if f.kind == frameDiscard {
			o.release(f.id)
		}
	case s.granted:
		return fmt.Errorf("broken ring: second answer to message %d", f.id)
	case f.kind == frameDiscard:
		o.release(f.id)
		s.end(nil)
	default:
		s.granted = true
		o.jobs.push(s)
		l.flush()
	}
	return nil
}

func (o *outgoing) release(id uint32) {
	o.sends[id] = nil
	o.free = append(o.free, id)
}

// sendFrames writes what has waited for space.
func (l *link) sendFrames(wait bool) {
	if wait {
		l.out.mu.Lock()
	} else if !l.out.mu.TryLock() {
		return
	}
	l.flush()
	l.out.mu.Unlock()
}

// flush writes as much as the ring takes; out.mu is held.
func (l *link) flush() {
	o := &l.out
	for {
		l.flushSome()
		if o.waiting.empty() && o.drained != nil {
			close(o.drained)
			o.drained = nil
		}
		if o.waiting.empty() && o.jobs.empty() {
			o.blocked.Store(false)
			return
		}
		o.blocked.Store(true)
		o.ring.waiting.Store(1)
		if o.ring.head.Load() == o.ring.limit { // no space came before the reader could see that
			return
		}
	}
}

func (l *link) flushSome() {
	o := &l.out
	for !o.waiting.empty() {
		q := o.waiting.first()
		if !o.ring.write(q.frame, q.buffer.b) {
			return
		}
		o.waiting.pop()
		l.transport.buffers.put(q.buffer)
		l.transport.notify(l.peer)
	}
	part := min(dataMax, len(o.ring.data)/4-frameHead)
	for !o.jobs.empty() {
		s := o.jobs.first()
		n := min(part, len(s.b)-s.sent)
		if !o.ring.write(frame{kind: frameData, id: s.id}, s.b[s.sent:s.sent+n]) {
			return
		}
		l.transport.notify(l.peer)
		if s.sent += n; s.sent == len(s.b) {
			o.jobs.pop()
			o.release(s.id)
			s.end(nil)
		}
	}
}

// cancelSend ends s with err unless it has ended.
func (l *link) cancelSend(s *send, err error) {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.ended.Load():
		return
	case !s.granted: // a grant may be under way: the id stays taken
		o.sends[s.id] = withdrawn
		l.emit(frame{kind: frameWithdraw, id: s.id}, nil)
	default:
		o.jobs.remove(s)
		l.emit(frame{kind: frameAbort, id: s.id}, nil)
		o.release(s.id)
	}
	s.end(err)
}

// sendSelf is Send to the own rank.
func (l *link) sendSelf(ctx context.Context, tag collective.Tag, b []byte) error {
	l.in.mu.Lock()
	if l.in.err != nil {
		defer l.in.mu.Unlock()
		return l.in.err
	}
	if len(b) <= collective.EagerSize {
		data := l.transport.buffers.get(len(b))
		copy(data.b, b)
		l.offer(&arrival{tag: tag, data: data, size: len(b)})
		l.in.mu.Unlock()
		return nil
	}
	s := &send{tag: tag, b: b, done: make(chan struct{}, 1)}
	a := &arrival{tag: tag, local: s, size: len(b)}
	l.offer(a)
	l.in.mu.Unlock()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if q := l.queue(tag); q.arrivals.remove(a) {
		l.tidy(tag, q)
		return ctx.Err()
	}
	<-s.done
	return s.err
}
