package collective

import (
	"context"
	"sync"
	"sync/atomic"
)

// Work is a call in flight. Its methods are safe for concurrent use.
type Work struct {
	ended atomic.Bool // set last, under mu
	mu    sync.Mutex
	err   error
	done  chan struct{} // made when somebody asks for it

	// Of a Group's call; zero for a hook's.
	group    *Group
	ctx      context.Context
	call     Call
	sequence uint64
	next     *Work       // in the Group's queue
	waiting  int         // parts of an Exchange that have not ended
	waited   atomic.Bool // a goroutine is or was in Wait
}

// NewWork returns a Work and the function that completes it, for hooks that
// bring their own communication. complete is called once.
func NewWork() (w *Work, complete func(error)) {
	w = &Work{}
	return w, w.finish
}

func failedWork(err error) *Work {
	w := &Work{err: err}
	w.ended.Store(true)
	return w
}

// begin makes w the Work of a call that its caller runs at once and waits for.
// Whoever watches the Group may still look at the call before it.
func (w *Work) begin(g *Group, ctx context.Context, c *Call, sequence uint64) {
	w.mu.Lock()
	w.group, w.ctx, w.call, w.sequence = g, ctx, *c, sequence
	w.call.normalise()
	w.ended.Store(false)
	w.mu.Unlock()
	w.waited.Store(true)
}

// finish ends w; only the first call counts.
func (w *Work) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended.Load() {
		return
	}
	w.err = err
	w.group, w.call = nil, Call{}
	w.ended.Store(true)
	if w.done != nil {
		close(w.done)
	}
}

// partEnded counts down the parts of an Exchange and ends w with the last.
func (w *Work) partEnded(err error) {
	w.mu.Lock()
	w.waiting--
	last := w.waiting == 0
	w.mu.Unlock()
	if last || err != nil {
		w.finish(err)
	}
}

// Done is closed when the call has ended.
func (w *Work) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.ended.Load() {
			close(w.done)
		}
	}
	return w.done
}

// Err returns the call's error; nil before Done.
func (w *Work) Err() error {
	if !w.ended.Load() {
		return nil
	}
	return w.err
}

// Ended reports whether the call has ended.
func (w *Work) Ended() bool { return w.hasEnded() }

// Wait returns the call's error when it has ended, or ctx's when that ends
// first; the call goes on then. When the Comm is idle the call runs on the
// caller's goroutine, which saves two switches.
func (w *Work) Wait(ctx context.Context) error {
	w.mu.Lock()
	ended, group := w.ended.Load(), w.group
	w.mu.Unlock()
	// Running the call here is right only where Wait could not end before it.
	if !ended && group != nil {
		w.waited.Store(true)
		if ctx.Done() == nil || ctx.Done() == w.ctx.Done() {
			group.runUntil(w)
			ended = w.hasEnded()
		}
	}
	if ended {
		return w.Err()
	}
	select {
	case <-w.Done():
		return w.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// about returns the call, or the zero Call once it has ended.
func (w *Work) about() Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.call
}

// unfinished is a call that has not ended, and its sequence number.
func (w *Work) unfinished() (c Call, sequence uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.call, w.sequence, !w.ended.Load()
}

// asked reports that somebody waits for w's end, by Done or, where no call is to be
// run, by Wait.
func (w *Work) asked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done != nil
}

func (w *Work) hasEnded() bool { return w.ended.Load() }
