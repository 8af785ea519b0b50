package tcp

import (
	"sync/atomic"

	"github.com/gradfusion/gradfusion/collective"
)

// ending is how somebody who waits learns of the end.
type ending struct {
	c    chan struct{} // gets one element
	over atomic.Bool   // set before that: a receiver who sleeps takes it off c at once
}

func newEnding() *ending { return &ending{c: make(chan struct{}, 1)} }

func (e *ending) tell() {
	e.over.Store(true)
	e.c <- struct{}{}
}

// again makes e ready for another wait.
func (e *ending) again() *ending {
	e.over.Store(false)
	return e
}

// receive is one Recv that waits. All fields but done are guarded by the link's
// lock until it is finished.
type receive struct {
	next    *receive
	tag     collective.Tag
	buf     []byte
	use     func([]byte) error // borrows the bytes instead, when buf is nil
	whole   func([]byte) error // borrows all of buf in the end, which is gathered then
	gather  []byte             // memory for that, kept
	lent    *frame             // an eager message that is use's
	posted  bool               // in its tag's queue
	slot    int                // where the granted message arrives, -1: none
	filling int                // readers at work on buf
	giveUp  error              // why they must stop at once
	ended   bool
	err     error
	done    *ending
}

// fits reports whether a message of size bytes can be taken.
func (r *receive) fits(size int) bool { return r.use != nil || len(r.buf) == size }

// send is one Send of an announced message that waits.
type send struct {
	next      *send // in the list of jobs
	tag       collective.Tag
	buf       []byte
	id        uint32
	slot      uint32 // the receiver's
	taken     int    // bytes that are in frames
	ready     int    // bytes that may be: a multiple of readyGrain, or all
	serial    uint64 // changes when the send ends
	writing   int    // writers at work on buf
	local     bool   // to the own rank
	announced bool   // not granted yet
	queued    bool   // in the list of jobs
	delivered bool   // the peer has all bytes
	giveUp    error  // why the writers must stop at once
	ended     bool
	err       error
	done      *ending
}

// arrival is a message that nobody has asked for yet: an eager one (eager set),
// an announced one, or one of the own rank (local set).
type arrival struct {
	next  *arrival
	tag   collective.Tag
	eager *frame
	local *send
	id    uint32
	size  int
	head  [collective.HeadSize]byte // of an announced message
}

// copyHead returns the message's first bytes, for a LengthError.
func (a *arrival) copyHead() []byte {
	n := min(a.size, collective.HeadSize)
	switch {
	case a.eager != nil:
		return append([]byte(nil), a.eager.b[:n]...)
	case a.local != nil:
		return append([]byte(nil), a.local.buf[:n]...)
	}
	return append([]byte(nil), a.head[:n]...)
}

// queue holds what one tag has on one link: receives that wait for messages, or
// messages that wait for receives, never both.
type queue struct {
	next               *queue // in the free list
	receives, lastRecv *receive
	arrivals, lastArr  *arrival
}

func (q *queue) empty() bool { return q.receives == nil && q.arrivals == nil }

func (q *queue) post(r *receive) {
	r.posted, r.next = true, nil
	if q.receives == nil {
		q.receives = r
	} else {
		q.lastRecv.next = r
	}
	q.lastRecv = r
}

func (q *queue) postFirst(r *receive) {
	r.posted, r.next = true, q.receives
	if q.receives == nil {
		q.lastRecv = r
	}
	q.receives = r
}

func (q *queue) removeReceive(r *receive) {
	var before *receive
	for at := q.receives; at != nil; before, at = at, at.next {
		if at != r {
			continue
		}
		if before == nil {
			q.receives = r.next
		} else {
			before.next = r.next
		}
		if q.lastRecv == r {
			q.lastRecv = before
		}
		r.posted, r.next = false, nil
		return
	}
}

func (q *queue) arrive(a *arrival) {
	a.next = nil
	if q.arrivals == nil {
		q.arrivals = a
	} else {
		q.lastArr.next = a
	}
	q.lastArr = a
}

func (q *queue) removeArrival(a *arrival) {
	var before *arrival
	for at := q.arrivals; at != nil; before, at = at, at.next {
		if at != a {
			continue
		}
		if before == nil {
			q.arrivals = a.next
		} else {
			before.next = a.next
		}
		if q.lastArr == a {
			q.lastArr = before
		}
		a.next = nil
		return
	}
}
