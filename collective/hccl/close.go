//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Close implements collective.Comm: calls that have not ended fail with
// collective.ErrClosed. Peers that wait for them time out. It fails when the library
// does not let go of a thread: what that may touch is left to the process's end.
func (c *Comm) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	cause := context.Cause(c.ctx)
	failed := c.hung.Load() || cause != nil && !errors.Is(cause, collective.ErrClosed)
	c.cancel(collective.ErrClosed) // with the lock: whoever is queueing now is ended below
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.gone()
	if c.owner {
		c.job.cancel(collective.ErrClosed)
	}
	c.owned.Wait()
	err := c.release(failed || c.hung.Load()) // calls that Close cut off set it
	if c.held.Load() && !errors.Is(err, errHeld) {
		err = errors.Join(err, errHeld)
	}
	if c.owner {
		c.job.owned.Wait()
	}
	return err
}

// errHeld says that a thread of the device is in the library for good.
var errHeld = errors.New("the library does not let go of a thread; what that uses is freed with the process")

// ticks of a tenth of a second are the patience with a library that may never answer. A
// process that did not get to run meanwhile has not waited.
const ticks = 30

// patience ends after so many ticks, if it is limited.
func patience(limited bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if !limited {
		return ctx, cancel
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for range ticks {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return ctx, func() { cancel(); <-ended }
}

// release frees what the Comm has on the device: work that hangs is dropped, the
// communicator ended, which also ends a call that blocks in it, then the rest. After a
// failure it has limited patience with the library.
func (c *Comm) release(failed bool) error {
	ctx, stop := patience(failed)
	defer stop()
	err := c.dissolve(ctx)
	if failed && ctx.Err() != nil {
		c.device.Abandon()
		return errHeld
	}
	return err
}

func (c *Comm) dissolve(ctx context.Context) error {
	if c.waiting == nil {
		if c.issuing != nil {
			c.issuing.Close()
		}
		return nil
	}
	defer c.waiting.CloseBefore(ctx)
	hung := c.hung.Load()
	streams := func(f func(ascend.Stream) error) error {
		var errs []error
		for _, s := range []ascend.Stream{c.in, c.running, c.out} {
			if s != 0 {
				errs = append(errs, f(s))
			}
		}
		return errors.Join(errs...)
	}
	if hung {
		_ = c.waiting.DoContext(ctx, func() error { return streams(c.device.AbortStream) }) // they may have failed already
	}
	err := c.destroy(ctx, c.waiting, c.name, c.handle)
	if !c.issuing.CloseBefore(ctx) {
		return err // it still runs what a call has given up, with a slot and streams
	}
	return errors.Join(err, c.waiting.DoContext(ctx, func() error {
		errs := []error{streams(func(s ascend.Stream) error { return c.device.DestroyStream(s, hung) })}
		for _, s := range c.slots {
			errs = append(errs, s.free(c.device))
		}
		return errors.Join(errs...)
	}))
}
