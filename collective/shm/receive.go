//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"fmt"
	"sync"

	"github.com/gradfusion/gradfusion/collective"
)

// receives keeps receives for reuse.
type receives struct{ pool sync.Pool }

func (p *receives) get() *receive {
	if r, ok := p.pool.Get().(*receive); ok {
		return r
	}
	return &receive{done: make(chan struct{}, 1)}
}

func (p *receives) put(r *receive) {
	r.into, r.use, r.place, r.used, r.granted, r.err = nil, nil, nil, false, 0, nil
	r.ended.Store(false)
	p.pool.Put(r)
}

// Recv fills b with the next message of that tag from rank from.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	if b == nil {
		b = []byte{}
	}
	return t.receive(ctx, from, tag, b, nil)
}

// RecvInPlace is always offered. use is called with the link's lock held, so it
// must not call the transport.
func (t *Transport) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	return true, t.receive(ctx, from, tag, nil, use)
}

func (t *Transport) receive(ctx context.Context, from int, tag collective.Tag, into []byte, use func([]byte) error) error {
	if from < 0 || from >= t.size {
		return fmt.Errorf("rank %d: receive from rank %d of %d", t.rank, from, t.size)
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	l := t.links[from]
	r := t.receives.get()
	r.tag, r.from, r.into, r.use = tag, from, into, use
	defer t.receives.put(r)
	if err := l.post(r); err != nil {
		return err
	}
	if t.await(ctx, &r.ended, r.done) {
		l.cancelReceive(r, ctx.Err())
		<-r.done
	}
	return r.finish(t)
}

// finish is what the caller does with an ended receive.
func (r *receive) finish(t *Transport) error {
	if r.place == nil {
		return r.err
	}
	defer t.buffers.put(r.place)
	if r.err == nil && !r.used {
		return r.use(r.place.b)
	}
	return r.err
}

// post gives r the message that is there already or lets it wait.
func (l *link) post(r *receive) error {
	l.in.mu.Lock()
	if l.in.err != nil {
		defer l.in.mu.Unlock()
		return l.in.err
	}
	q := l.queue(r.tag)
	var broken error
	switch {
	case !q.arrivals.empty():
		l.match(r, q.arrivals.pop())
		l.tidy(r.tag, q)
	case l.in.left != nil:
		defer l.in.mu.Unlock()
		l.tidy(r.tag, q)
		return l.in.left
	default:
		q.receives.push(r)
		if l.peer != l.transport.rank && l.in.ring.filled() {
			broken = l.takeLocked(r)
		}
	}
	l.in.mu.Unlock()
	if broken != nil {
		l.transport.fail(l.peer, broken)
	}
	return nil
}

// match brings a receive and a message together; both are out of their queues.
// in.mu is held.
func (l *link) match(r *receive, a *arrival) {
	fits := r.use != nil || a.size == len(r.into)
	var err error
	if !fits {
		err = &collective.LengthError{Peer: l.name(), Tag: r.tag, Want: len(r.into), Got: a.size, Head: a.headCopy()}
	}
	switch {
	case a.data != nil:
		l.consume(a.size)
		if r.use != nil {
			r.place = a.data
			r.end(nil)
			return
		}
		if fits {
			copy(r.into, a.data.b)
		}
		l.transport.buffers.put(a.data)
		r.end(err)
	case a.local != nil:
		if fits {
			copy(l.space(r, a.size), a.local.b)
		}
		a.local.end(nil)
		r.end(err)
	case fits:
		l.space(r, a.size)
		r.granted = a.id + 1
		l.in.streams[a.id] = &stream{receive: r, size: a.size}
		l.answer(frame{kind: frameGrant, id: a.id})
	default:
		l.answer(frame{kind: frameDiscard, id: a.id})
		r.end(err)
	}
}

// space is where a message of that size goes.
func (l *link) space(r *receive, size int) []byte {
	if r.use == nil {
		return r.into
	}
	r.place = l.transport.buffers.get(size)
	return r.place.b
}

// offer gives a message to the first receive that waits for it, or keeps it.
func (l *link) offer(a *arrival) {
	q := l.queue(a.tag)
	if q.receives.empty() {
		q.arrivals.push(a)
		return
	}
	l.match(q.receives.pop(), a)
	l.tidy(a.tag, q)
}

// handleEager takes a small message from the ring, without a copy on the way
// when its receiver is there.
func (l *link) handleEager(f frame, b []byte, own *receive) {
	q := l.queue(f.tag)
	if q.receives.empty() {
		data := l.transport.buffers.get(len(b))
		copy(data.b, b)
		q.arrivals.push(&arrival{tag: f.tag, data: data, size: len(b)})
		return
	}
	r := q.receives.pop()
	l.tidy(f.tag, q)
	l.consume(len(b))
	switch {
	case r.use != nil && r == own:
		r.used = true
		r.end(r.use(b))
	case r.use != nil:
		copy(l.space(r, len(b)), b)
		r.end(nil)
	case len(r.into) != len(b):
		head := append([]byte(nil), b[:min(len(b), collective.HeadSize)]...)
		r.end(&collective.LengthError{Peer: l.name(), Tag: r.tag, Want: len(r.into), Got: len(b), Head: head})
	default:
		copy(r.into, b)
		r.end(nil)
	}
}

// consume gives a small message's credit back to its sender.
func (l *link) consume(size int) {
	if l.peer != l.transport.rank {
		l.in.ring.consumed.Add(uint64(size + eagerCost))
	}
}

func (l *link) handleData(f frame, b []byte) error {
	s := l.in.streams[f.id]
	if s == nil || len(b) > s.size-s.got {
		return fmt.Errorf("broken ring: %d bytes of message %d", len(b), f.id)
	}
	r := s.receive
	if r != nil {
		into := r.into
		if r.use != nil {
			into = r.place.b
		}
		copy(into[s.got:], b)
	}
	if s.got += len(b); s.got == s.size {
		delete(l.in.streams, f.id)
		if r != nil {
			r.end(nil)
		}
	}
	return nil
}

// handleWithdraw takes an announcement back and says so, unless the message was
// discarded before, which is the answer as well.
func (l *link) handleWithdraw(id uint32) {
	for tag, q := range l.in.queues {
		for _, a := range q.arrivals.items[q.arrivals.head:] {
			if a.data == nil && a.local == nil && a.id == id {
				q.arrivals.remove(a)
				l.tidy(tag, q)
				l.answer(frame{kind: frameDiscard, id: id})
				return
			}
		}
	}
	s := l.in.streams[id]
	if s == nil {
		return
	}
	delete(l.in.streams, id)
	l.answer(frame{kind: frameDiscard, id: id})
	if r := s.receive; r != nil { // as if it had not been granted
		r.granted = 0
		if r.place != nil {
			l.transport.buffers.put(r.place)
			r.place = nil
		}
		q := l.queue(r.tag)
		if q.arrivals.empty() {
			q.receives.pushFront(r)
		} else {
			l.match(r, q.arrivals.pop())
		}
	}
}

// cancelReceive ends r with err unless it has ended. Of a message that has begun
// to arrive the rest is dropped.
func (l *link) cancelReceive(r *receive, err error) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if r.ended.Load() {
		return
	}
	if s := l.in.streams[r.granted-1]; r.granted > 0 && s != nil && s.receive == r {
		s.receive = nil
	} else if q := l.queue(r.tag); q.receives.remove(r) {
		l.tidy(r.tag, q)
	}
	r.end(err)
}
