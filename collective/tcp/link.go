package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// Eager messages that may wait at the receiver, per direction of a pair; each
// costs eagerCost more than its bytes.
const (
	eagerCredit = 64 << 20
	eagerCost   = 64
)

var past = time.Unix(1, 0) // a deadline that interrupts

// link is what one rank has with one peer; the own rank has one without
// sockets. mu guards the matching of messages, a socket's out.mu its frames; mu
// may be held when out.mu is taken, not the other way round, and neither is held
// during input or output.
type link struct {
	transport *Transport
	peer      int
	sockets   []*socket // none for the own rank; the first carries all but Data
	damage    atomic.Bool

	mu          sync.Mutex
	err         error // what every call gets now: failure or Close
	left        error // the peer has closed: nothing more will arrive or be taken
	queues      map[collective.Tag]*queue
	slots       []slot  // granted messages on their way here
	sends       []*send // announced messages, by id
	freeIDs     []uint32
	jobs, final *send // granted messages that are not in frames yet
	credit      int   // bytes of eager messages that may still be sent
	consumed    int   // bytes of eager messages to be credited to the peer
	// withdrawn stands in sends for a message that was given up and whose id the
	// peer has not answered yet.
	withdrawn send
	spare     struct {
		queues   *queue
		receives *receive
		sends    *send
		arrivals *arrival
	}

	waiting  waiters
	hasJobs  atomic.Bool
	streams  atomic.Int32 // used slots
	patience atomic.Int64 // nanoseconds that a waiter reads by itself

	parted   chan struct{} // closed when the peer has answered the goodbye or is gone
	partOnce sync.Once
}

// slot is one granted message on its way here.
type slot struct {
	used      bool
	receive   *receive // nil: the receiver gave up, drop the bytes
	announced uint32   // the sender's id
	size      int
	missing   int
}

func newLink(t *Transport, peer int) *link {
	l := &link{
		transport: t,
		peer:      peer,
		queues:    map[collective.Tag]*queue{},
		credit:    eagerCredit,
		parted:    make(chan struct{}),
	}
	l.patience.Store(int64(pollTime))
	l.withdrawn.ended = true
	return l
}

// lost is the error of calls that needed the peer.
func (l *link) lost(err error) *collective.LinkError {
	return &collective.LinkError{Rank: l.transport.rank, Peer: l.peer, Err: err}
}

func (l *link) part() { l.partOnce.Do(func() { close(l.parted) }) }

// abandon ends all calls with err, which later calls get too, and does not wait
// for readers and writers to let go of the buffers; the calls do.
func (l *link) abandon(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.endReceives(err)
	l.endSends(err)
}

// leave is abandon for a peer that has closed: what it sent can be received.
func (l *link) leave(culprit int) {
	cause := fmt.Errorf("rank %d has left", l.peer)
	if culprit >= 0 {
		cause = &collective.DepartedError{Rank: l.peer, Lost: culprit}
	}
	err := l.lost(cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = err
	l.endReceives(err)
	l.endSends(err)
}

func (l *link) endReceives(err error) {
	for tag, q := range l.queues {
		for q.receives != nil {
			r := q.receives
			q.removeReceive(r)
			l.endReceive(r, err)
		}
		l.dropIfEmpty(tag, q)
	}
	for i := range l.slots {
		if r := l.slots[i].receive; r != nil {
			l.giveUpReceive(r, err)
		}
	}
	for _, s := range l.sockets {
		if r := s.in.into; r != nil {
			l.giveUpReceive(r, err)
		}
	}
}

// endSends also forgets the messages here whose bytes are still at the sender.
func (l *link) endSends(err error) {
	for tag, q := range l.queues {
		for a := q.arrivals; a != nil; {
			next := a.next
			if a.eager == nil {
				q.removeArrival(a)
				if a.local != nil {
					l.endSend(a.local, err)
				}
				l.freeArrival(a)
			}
			a = next
		}
		l.dropIfEmpty(tag, q)
	}
	for _, s := range l.sends {
		if s != nil && !s.ended {
			l.giveUpSend(s, err)
		}
	}
}

func (l *link) queue(tag collective.Tag) *queue {
	q := l.queues[tag]
	if q == nil {
		q = l.spare.queues
		if q == nil {
			q = &queue{}
		} else {
			l.spare.queues = q.next
			*q = queue{}
		}
		l.queues[tag] = q
	}
	return q
}

func (l *link) dropIfEmpty(tag collective.Tag, q *queue) {
	if !q.empty() {
		return
	}
	delete(l.queues, tag)
	q.next = l.spare.queues
	l.spare.queues = q
}

func (l *link) newArrival(tag collective.Tag) *arrival {
	a := l.spare.arrivals
	if a == nil {
		a = &arrival{}
	} else {
		l.spare.arrivals = a.next
	}
	*a = arrival{tag: tag}
	return a
}

func (l *link) freeArrival(a *arrival) {
	*a = arrival{next: l.spare.arrivals}
	l.spare.arrivals = a
}

// push queues a frame without payload. Links' locks may be held; flush writes it
// after they are released.
func (l *link) push(h header) {
	f := l.transport.pool.get(headerLen)
	h.put(f.b)
	l.sockets[0].out.append(l.transport, f)
}

// flush writes what is queued as far as the socket takes it without waiting.
func (l *link) flush() {
	if len(l.sockets) > 0 {
		l.sockets[0].flush()
	}
}
