package tcp

import (
	"net"
	"sync"
)

// output is what waits to be written to one peer: whole frames in order, and
// messages that are streamed frame by frame when no whole frame waits.
type output struct {
	mu           sync.Mutex
	first, last  *buffer
	jobs, finalJ *send
	busy         bool // somebody is writing and will look at the lists again
	dead         bool // writing has failed
	kick         chan struct{}

	// Of the one who is busy.
	head    [headerLen]byte
	pair    [2][]byte
	vector  net.Buffers
	attempt attempt
}

func (o *output) prepare() { o.attempt.prepare() }

func (o *output) append(t *Transport, f *buffer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		t.pool.put(f)
		return
	}
	if o.first == nil {
		o.first = f
	} else {
		o.last.next = f
	}
	o.last = f
}

func (o *output) pop() *buffer {
	f := o.first
	if f != nil {
		o.first = f.next
		f.next = nil
	}
	return f
}

func (o *output) putBack(f *buffer) {
	f.next = o.first
	if o.first == nil {
		o.last = f
	}
	o.first = f
}

func (o *output) popJob() *send {
	s := o.jobs
	if s != nil {
		o.jobs = s.next
		s.next = nil
	}
	return s
}

// addJob queues s and reports whether the caller must kick the writer.
func (o *output) addJob(s *send) (kick bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return false
	}
	s.next = nil
	if o.jobs == nil {
		o.jobs = s
	} else {
		o.finalJ.next = s
	}
	o.finalJ = s
	if o.busy {
		return false
	}
	o.busy = true
	return true
}

func (o *output) removeJob(s *send) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var before *send
	for at := o.jobs; at != nil; before, at = at, at.next {
		if at != s {
			continue
		}
		if before == nil {
			o.jobs = s.next
		} else {
			before.next = s.next
		}
		if o.finalJ == s {
			o.finalJ = before
		}
		s.next = nil
		return true
	}
	return false
}

// push queues a frame without payload. Links' locks may be held; flush writes it
// after they are released.
func (l *link) push(h header) {
	f := l.transport.pool.get(headerLen)
	h.put(f.b)
	l.out.append(l.transport, f)
}

// flush writes what is queued as far as the socket takes it without blocking and
// leaves the rest to the writer. It never waits, so the reader may call it.
func (l *link) flush() {
	if l.conn == nil {
		return
	}
	o := &l.out
	o.mu.Lock()
	if o.busy || o.dead || o.first == nil {
		o.mu.Unlock()
		return
	}
	o.busy = true
	for f := o.pop(); f != nil; f = o.pop() {
		o.mu.Unlock()
		f.sent += o.attempt.write(l.raw, f.b[f.sent:])
		if f.sent < len(f.b) {
			o.mu.Lock()
			o.putBack(f)
			o.mu.Unlock()
			o.kick <- struct{}{}
			return
		}
		l.transport.pool.put(f)
		o.mu.Lock()
	}
	if o.jobs != nil {
		o.mu.Unlock()
		o.kick <- struct{}{}
		return
	}
	o.busy = false
	o.mu.Unlock()
}
