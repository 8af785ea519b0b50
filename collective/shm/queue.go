//go:build linux && (amd64 || arm64)

package shm

import (
	"sync/atomic"

	"github.com/gradfusion/gradfusion/collective"
)

// receive is a Recv or RecvInPlace that waits, under the link's in.mu until it
// has ended.
type receive struct {
	tag     collective.Tag
	from    int
	into    []byte
	use     func([]byte) error // in place; used when into is nil
	place   *buffer            // in place: what the message lies in
	used    bool               // in place: use was called, err is its result
	granted uint32             // id + 1 of the stream that serves it
	err     error
	ended   atomic.Bool
	done    chan struct{} // one element once ended
}

func (r *receive) end(err error) {
	r.err = err
	r.ended.Store(true)
	r.done <- struct{}{}
}

// send is a Send of an announced message that waits, under the link's out.mu.
type send struct {
	tag     collective.Tag
	b       []byte
	id      uint32
	sent    int
	granted bool
	err     error
	ended   atomic.Bool
	done    chan struct{}
}

func (s *send) end(err error) {
	s.err = err
	s.ended.Store(true)
	s.done <- struct{}{}
}

// withdrawn stands for a send that was given up and whose id the peer may still
// answer.
var withdrawn = &send{}

// arrival is a message that nobody has asked for yet: a small one in data, an
// announced one, or one of the own rank.
type arrival struct {
	tag   collective.Tag
	data  *buffer
	local *send
	id    uint32
	size  int
	head  []byte
}

func (a *arrival) headCopy() []byte {
	b := a.head
	switch {
	case a.data != nil:
		b = a.data.b
	case a.local != nil:
		b = a.local.b
	}
	return append([]byte(nil), b[:min(a.size, len(b), collective.HeadSize)]...)
}

// queue is what one tag has on one link: receives that wait for messages or
// messages that wait for receives, never both.
type queue struct {
	receives list[*receive]
	arrivals list[*arrival]
}

// list is a queue that keeps its memory.
type list[T comparable] struct {
	items []T
	head  int
}

func (l *list[T]) empty() bool { return l.head == len(l.items) }

func (l *list[T]) all() []T { return append([]T(nil), l.items[l.head:]...) }

func (l *list[T]) push(v T) { l.items = append(l.items, v) }

func (l *list[T]) pushFront(v T) {
	if l.head == 0 {
		l.items = append(l.items, v)
		copy(l.items[1:], l.items)
		l.items[0] = v
		return
	}
	l.head--
	l.items[l.head] = v
}

// first is the oldest item of a list that is not empty.
func (l *list[T]) first() T { return l.items[l.head] }

func (l *list[T]) pop() T {
	var zero T
	v := l.items[l.head]
	l.items[l.head] = zero
	l.head++
	if l.empty() {
		l.items, l.head = l.items[:0], 0
	} else if l.head > 32 && 2*l.head > len(l.items) {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	return v
}

func (l *list[T]) remove(v T) bool {
	for i := l.head; i < len(l.items); i++ {
		if l.items[i] == v {
			l.items = append(l.items[:i], l.items[i+1:]...)
			return true
		}
	}
	return false
}

// queue returns the queue of a tag; in.mu is held.
func (l *link) queue(tag collective.Tag) *queue {
	q := l.in.queues[tag]
	if q == nil {
		if n := len(l.in.spare); n > 0 {
			q, l.in.spare = l.in.spare[n-1], l.in.spare[:n-1]
		} else {
			q = &queue{}
		}
		l.in.queues[tag] = q
	}
	return q
}

// keepQueues is the number of empty queues that stay: a steady user comes back
// to the same tags.
const keepQueues = 64

func (l *link) tidy(tag collective.Tag, q *queue) {
	if len(l.in.queues) > keepQueues && q.receives.empty() && q.arrivals.empty() {
		delete(l.in.queues, tag)
		if len(l.in.spare) < keepQueues {
			l.in.spare = append(l.in.spare, q)
		}
	}
}
