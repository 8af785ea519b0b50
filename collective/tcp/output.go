package tcp

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// ackFrames is how many frames are handled before the peer is told, unless a
// frame that goes to it anyway has said so.
const ackFrames = 64

// output is what goes to one peer over one socket, frame by frame. Frames are
// kept from their making until the peer has handled them, so that they can be
// sent again:
//
//	first (oldest unacknowledged) -> ... -> cursor (next to write) -> ... -> last
type output struct {
	mu                  sync.Mutex
	first, cursor, last *frame
	acked               uint32 // frames that have left the list, handled by the peer
	written             uint32 // frames before cursor, the acked ones counted
	ackDue              bool
	busy                bool // somebody is writing and will look at the list again
	broken              bool // nobody may write: the connection is to be replaced
	dead                bool // for good
	idle                sync.Cond
	kick                chan struct{}
	handled             atomic.Uint32 // frames of the peer, as the reader counts them
	told                atomic.Uint32 // as the peer knows

	// Of the one who is busy.
	ack     [headerLen]byte
	pieces  [3][]byte
	vector  net.Buffers
	trailer [trailerLen]byte
	zeros   []byte
	attempt attempt
	current *send // whose memory is being written; guarded by link.mu
}

// append queues a frame.
func (o *output) append(t *Transport, f *frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		t.pool.put(f)
		return
	}
	o.add(f)
}

func (o *output) add(f *frame) {
	f.next = nil
	if o.first == nil {
		o.first = f
	} else {
		o.last.next = f
	}
	o.last = f
	if o.cursor == nil {
		o.cursor = f
	}
}

// advance moves past a frame that has been written.
func (o *output) advance() {
	o.cursor = o.cursor.next
	o.written++
}

// acknowledge frees the frames that the peer has handled, count since ever.
func (o *output) acknowledge(t *Transport, count uint32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.release(t, count)
}

func (o *output) release(t *Transport, count uint32) error {
	n := count - o.acked // counts wrap around
	if int32(n) <= 0 {
		return nil // older than what is known
	}
	if n > o.written-o.acked+1 { // one more: the peer was faster than its writer's return
		return fmt.Errorf("broken stream: %d frames acknowledged of %d", n, o.written-o.acked)
	}
	for n = min(n, o.written-o.acked); n > 0; n-- {
		f := o.first
		o.first = f.next
		o.acked++
		t.pool.put(f)
	}
	return nil
}

// rewind goes back to the first frame that the peer, on a new connection, says
// it has not handled. Nobody is busy.
func (o *output) rewind(t *Transport, count uint32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := count - o.acked
	if n == o.written-o.acked+1 && o.cursor != nil {
		o.advance() // it went out whole, but its write did not return so
	}
	if n > o.written-o.acked {
		return fmt.Errorf("broken stream: the peer has handled %d frames more, of %d", n, o.written-o.acked)
	}
	if err := o.release(t, count); err != nil {
		return err
	}
	for f := o.first; f != nil; f = f.next {
		f.sent = 0
	}
	o.cursor, o.written = o.first, o.acked
	o.broken = false
	return nil
}

// stopWriting waits until nobody writes and nobody will; the caller has made
// writing fail.
func (o *output) stopWriting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = true
	for o.busy {
		o.idle.Wait()
	}
}

// bury frees what will not be sent. Nobody is busy.
func (o *output) bury(t *Transport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
	for f := o.first; f != nil; {
		next := f.next
		t.pool.put(f)
		f = next
	}
	o.first, o.cursor, o.last = nil, nil, nil
}

// rest ends the caller's being busy; o.mu is held.
func (o *output) rest() {
	o.busy = false
	o.idle.Broadcast()
}

// wake makes the writer look at the list, unless somebody does already.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy && !o.broken && !o.dead {
		o.busy = true
		o.kick <- struct{}{}
	}
}

// noteHandled counts what the reader has handled and asks for an acknowledgement
// when the peer has not been told for long.
func (o *output) noteHandled(count uint32) {
	o.handled.Store(count)
	if count-o.told.Load() >= ackFrames {
		o.mu.Lock()
		o.ackDue = true
		o.mu.Unlock()
	}
}

// flush writes what is queued as far as the socket takes it without waiting and
// leaves the rest to the writer. It never waits, so readers may call it.
func (s *socket) flush() {
	o := &s.out
	o.mu.Lock()
	if o.busy || o.broken || o.dead || o.cursor == nil && !o.ackDue {
		o.mu.Unlock()
		return
	}
	o.busy = true
	for s.raw != nil && !o.broken && o.cursor != nil && o.cursor.part == nil {
		f := o.cursor
		o.mu.Unlock()
		if f.sent == 0 {
			s.stamp(f.b)
		}
		f.sent += o.attempt.write(s.raw, f.b[f.sent:])
		o.mu.Lock()
		if f.sent < len(f.b) {
			break
		}
		o.ackDue = false
		o.advance()
	}
	if o.broken || o.cursor == nil && !o.ackDue && !s.link.hasJobs.Load() {
		o.rest()
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	o.kick <- struct{}{}
}

// stamp completes a header right before its frame is written.
func (s *socket) stamp(head []byte) {
	count := s.out.handled.Load()
	s.out.told.Store(count)
	stamp(head[:headerLen], count, s.link.transport.table)
	if s.link.damage.Load() && s.link.damage.CompareAndSwap(true, false) {
		head[headerLen-1] ^= 1
	}
}
