//go:build linux && (amd64 || arm64)

package shm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gradfusion/gradfusion/collective"
)

// eagerCredit is how many bytes of small messages may wait at a receiver.
const eagerCredit = 64 << 20

// eagerCost is what a small message counts for beside its bytes.
const eagerCost = 64

// link is this rank's end of what connects it to one peer, or to itself. Locks
// are taken in before out.
type link struct {
	transport *Transport
	peer      int
	in        incoming
	out       outgoing
}

// incoming is the receiving side.
type incoming struct {
	mu      sync.Mutex
	ring    ring
	queues  map[collective.Tag]*queue
	spare   []*queue
	streams map[uint32]*stream // granted messages, by the sender's id
	left    error              // the peer has said goodbye
	err     error              // nothing works any more
}

// outgoing is the sending side.
type outgoing struct {
	mu      sync.Mutex
	ring    ring
	blocked atomic.Bool // something waits for space
	waiting list[*queued]
	jobs    list[*send] // granted, not all in the ring
	sends   []*send     // announced and not ended, by id; withdrawn
	free    []uint32    // ids
	eager   uint64      // bytes of small messages sent, to compare with consumed
	left    error
	err     error
	drained chan struct{} // closed when nothing but jobs waits; made by Close
}

// queued is a frame that found the ring full.
type queued struct {
	frame
	*buffer
}

// stream is a granted message on its way.
type stream struct {
	receive *receive // nil: nobody wants it any more
	size    int
	got     int
}

func newLink(t *Transport, peer int) *link {
	l := &link{transport: t, peer: peer}
	l.in.queues, l.in.streams = map[collective.Tag]*queue{}, map[uint32]*stream{}
	if peer != t.rank {
		ringBytes := func(from, to int) []byte {
			at := t.layout.ringAt(from, to)
			return t.control[at : at+t.layout.ringStride() : at+t.layout.ringStride()]
		}
		l.in.ring, l.out.ring = newRing(ringBytes(peer, t.rank)), newRing(ringBytes(t.rank, peer))
	}
	return l
}

func (l *link) lost(err error) *collective.LinkError {
	return &collective.LinkError{Rank: l.transport.names[l.transport.rank], Peer: l.name(), Err: err}
}

// name is the peer's number in errors.
func (l *link) name() int { return l.transport.names[l.peer] }

// abandon ends all calls with err.
func (l *link) abandon(err error) {
	l.in.mu.Lock()
	if l.in.err == nil {
		l.in.err = err
	}
	l.endReceives(l.in.err)
	l.out.mu.Lock()
	if l.out.err == nil {
		l.out.err = err
	}
	l.endSends(l.out.err)
	l.out.mu.Unlock()
	l.in.mu.Unlock()
}

// endReceives ends what waits for messages that will not come; those that have
// come stay. in.mu is held.
func (l *link) endReceives(err error) {
	for tag, q := range l.in.queues {
		for !q.receives.empty() {
			q.receives.pop().end(err)
		}
		l.tidy(tag, q)
	}
	for id, s := range l.in.streams {
		if s.receive != nil {
			s.receive.end(err)
		}
		delete(l.in.streams, id)
	}
}

// endSends ends the large messages that wait; in.mu and out.mu are held.
func (l *link) endSends(err error) {
	for id, s := range l.out.sends {
		if s != nil && s != withdrawn {
			s.end(err)
			l.out.sends[id] = withdrawn
		}
	}
	for !l.out.jobs.empty() {
		l.out.jobs.pop()
	}
	for tag, q := range l.in.queues { // of the link to itself
		for _, a := range q.arrivals.all() {
			if a.local != nil {
				q.arrivals.remove(a)
				a.local.end(err)
			}
		}
		l.tidy(tag, q)
	}
}

// takeFrames handles the frames that the peer has sent.
func (l *link) takeFrames(wait bool) {
	if wait {
		l.in.mu.Lock()
	} else if !l.in.mu.TryLock() {
		return
	}
	err := l.takeLocked(nil)
	l.in.mu.Unlock()
	if err != nil {
		l.transport.fail(l.peer, err)
	}
}

// takeLocked handles frames until none is left; in.mu is held. own is a receive
// in place whose caller this is: it is served from the ring itself.
func (l *link) takeLocked(own *receive) error {
	for l.in.err == nil {
		f, b, ok, err := l.in.ring.read()
		if err != nil || !ok {
			return err
		}
		err = l.handle(f, b, own)
		l.in.ring.done(f)
		if l.in.ring.waiting.Load() != 0 && l.in.ring.waiting.Swap(0) != 0 {
			l.transport.notify(l.peer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *link) handle(f frame, b []byte, own *receive) error {
	switch f.kind {
	case frameEager:
		l.handleEager(f, b, own)
	case frameAnnounce:
		a := &arrival{tag: f.tag, id: f.id, size: f.size, head: append([]byte(nil), b...)}
		l.offer(a)
	case frameData:
		return l.handleData(f, b)
	case frameAbort:
		if s := l.in.streams[f.id]; s != nil {
			delete(l.in.streams, f.id)
			if s.receive != nil {
				s.receive.end(l.lost(fmt.Errorf("rank %d gave up sending the message", l.name())))
			}
		}
	case frameWithdraw:
		l.handleWithdraw(f.id)
	case frameGrant, frameDiscard:
		return l.handleAnswer(f)
	case frameGoodbye:
		l.leave(int(f.tag) - 1)
	}
	return nil
}

// leave notes that the peer is gone in good order; what it sent before stays.
func (l *link) leave(culprit int) {
	err := fmt.Errorf("it has %w its transport", collective.ErrClosed)
	if culprit >= 0 {
		err = &collective.DepartedError{Rank: l.name(), Lost: culprit}
	}
	l.in.left = l.lost(err)
	l.endReceives(l.in.left)
	l.out.mu.Lock()
	l.out.left = l.in.left
	l.endSends(l.in.left)
	for !l.out.waiting.empty() {
		l.transport.buffers.put(l.out.waiting.pop().buffer)
	}
	l.flush()
	l.out.mu.Unlock()
}
