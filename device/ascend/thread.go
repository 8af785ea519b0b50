//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"context"
	"runtime"
	"sync"
)

// Thread is a goroutine on a system thread of its own that has a device's
// context. It runs what is posted to it, in order.
type Thread struct {
	posted chan func()
	quit   chan struct{}
	once   sync.Once
	ended  chan struct{}
}

func (d *Device) thread() *Thread {
	t := &Thread{posted: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	go t.run()
	return t
}

// run never unlocks its system thread, which so ends with it: nobody inherits
// the context.
func (t *Thread) run() {
	defer close(t.ended)
	runtime.LockOSThread()
	for {
		select {
		case f := <-t.posted:
			f()
		case <-t.quit:
			return
		}
	}
}

// NewThread starts a thread with the device's context. The caller closes it
// before the device.
func (d *Device) NewThread() (*Thread, error) {
	t := d.thread()
	err := t.Do(func() error {
		return d.library.Check("aclrtSetCurrentContext", Call(d.library.symbols.aclrtSetCurrentContext, d.context))
	})
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Do runs f on the thread and returns its error.
func (t *Thread) Do(f func() error) error { return t.DoContext(context.Background(), f) }

// DoContext is Do that gives up when ctx ends: f goes on, and what it set must not
// be read.
func (t *Thread) DoContext(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case t.posted <- func() { done <- f() }:
	case <-t.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ended:
	}
	select {
	case err := <-done:
		return err
	default: // f has ended the goroutine, as a failing test does
		return ErrClosed
	}
}

// Close ends the thread after what it runs now.
func (t *Thread) Close() { t.CloseBefore(context.Background()) }

// CloseBefore is Close that waits no longer than until ctx ends. It reports whether the
// thread has ended; one that has not does so when the library lets go of it.
func (t *Thread) CloseBefore(ctx context.Context) bool {
	t.once.Do(func() { close(t.quit) })
	select {
	case <-t.ended:
		return true
	case <-ctx.Done():
		return false
	}
}
