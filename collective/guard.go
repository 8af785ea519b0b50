package collective

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// guard ends the group when the call that it watches takes longer than the
// time-out or when the call's context ends. It is used for one call at a time
// and allocates nothing when calls share a context.
type guard struct {
	group   *Group
	waiting atomic.Int32  // the rank waited for, or -1
	sender  *sender       // knows whom a send waits for
	lane    *exchangeLane // whose parts it watches; nil: it watches calls

	mu       sync.Mutex
	work     *Work
	blamed   int // whom the rank waited for waits for itself, or -1
	deadline time.Time
	timer    *time.Timer
	armed    bool            // the timer runs; it is not stopped between calls
	watched  <-chan struct{} // the context's end that stop belongs to
	stop     func() bool
}

// begin watches w from now on; its error is that w's context has ended already.
func (d *guard) begin(w *Work, now time.Time) error {
	d.waiting.Store(-1)
	timeout := d.group.config.Timeout
	d.mu.Lock()
	d.work, d.blamed = w, -1
	d.deadline = now.Add(timeout)
	switch {
	case d.armed: // it fires no later than it would now
	case d.timer == nil:
		d.timer = time.AfterFunc(min(timeout, nudgeEvery), d.expired)
	default:
		d.timer.Reset(min(timeout, nudgeEvery))
	}
	d.armed = true
	if ended := w.ctx.Done(); ended != nil && ended != d.watched {
		if d.stop != nil {
			d.stop()
		}
		ctx := w.ctx
		d.watched, d.stop = ended, context.AfterFunc(ctx, func() { d.cancelled(ctx) })
	}
	d.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return nil
}

// end stops watching.
func (d *guard) end() {
	d.mu.Lock()
	d.work = nil
	d.mu.Unlock()
}

// close lets go of the last context.
func (d *guard) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.stop()
	}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// expired nudges the peer that is waited for, or ends the group when the time
// is over.
func (d *guard) expired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work == nil {
		d.armed = false
		return
	}
	peer := d.peer()
	timeout := d.group.config.Timeout
	left := time.Until(d.deadline)
	if d.lane != nil && !d.lane.asked() {
		left = timeout // whoever asks for it waits no longer than that, and not much less
		d.deadline = time.Now().Add(left)
	}
	if left > 0 {
		wait := min(left, nudgeEvery)
		if running := timeout - left; running < nudgeEvery/2 { // the timer was an earlier call's
			wait = min(left, nudgeEvery-running)
		} else if peer >= 0 && d.sender != nil {
			d.group.nudge(peer, d.work.sequence)
		}
		d.timer.Reset(wait)
		return
	}
	err := fmt.Errorf("not done within %v: %w", timeout, context.DeadlineExceeded)
	suspect := d.group.suspected()
	switch {
	case suspect != nil:
		err = &peerFailure{suspect.peer, fmt.Errorf("%w; waited %v for it: %w", suspect.err, timeout, context.DeadlineExceeded)}
	case d.blamed >= 0 && peer >= 0: // else the peer has come since, and this rank works
		err = &peerFailure{d.blamed, fmt.Errorf("waited %v for rank %d, which waits for it: %w", timeout, d.group.ranks[peer], context.DeadlineExceeded)}
	case peer >= 0:
		err = &peerFailure{peer, fmt.Errorf("waited %v for it: %w", timeout, context.DeadlineExceeded)}
	}
	d.group.kill(d.work, d.group.describe(d.work, err))
}

// peer is the rank that the call waits for, or -1.
func (d *guard) peer() int {
	peer := int(d.waiting.Load())
	if peer < 0 && d.sender != nil {
		peer = int(d.sender.peer.Load())
	}
	return peer
}

// waitsFor returns whom a call waits for in the end, as far as this rank knows,
// or -1.
func (d *guard) waitsFor(sequence uint64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.work == nil || d.work.sequence != sequence:
		return -1
	case d.blamed >= 0:
		return d.blamed
	}
	return d.peer()
}

// blame notes that the rank that a call waits for waits itself for another.
func (d *guard) blame(sequence uint64, peer int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work != nil && d.work.sequence == sequence && peer != d.group.rank {
		d.blamed = peer
	}
}

func (d *guard) cancelled(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work != nil && d.work.ctx.Done() == ctx.Done() {
		d.group.kill(d.work, d.group.describe(d.work, context.Cause(ctx)))
	}
}
