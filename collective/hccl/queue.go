//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// pending is a call that has not ended.
type pending struct {
	comm     *Comm
	ctx      context.Context
	call     collective.Call
	sequence uint64
	complete func(error)
	deadline time.Time
	began    int64 // nanoseconds since the Unix epoch
	sent     int
	received int
}

// Start implements collective.Comm.
func (c *Comm) Start(ctx context.Context, call collective.Call) *collective.Work {
	w, complete := collective.NewWork()
	p := &pending{comm: c, ctx: ctx, call: call, complete: complete}
	c.mu.Lock()
	c.sequence++
	p.sequence = c.sequence
	dead := c.ctx.Err() != nil
	if !dead {
		c.queue = append(c.queue, p)
	}
	c.mu.Unlock()
	if dead {
		complete(c.wrap(p, context.Cause(c.ctx)))
		return w
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return w
}

// end completes a call.
func (p *pending) end(err error) {
	c := p.comm
	c.mu.Lock()
	if at := slices.Index(c.open, p); at >= 0 {
		c.open = slices.Delete(c.open, at, at+1)
	}
	if err == nil {
		c.ended = max(c.ended, p.sequence)
	}
	c.mu.Unlock()
	p.complete(err)
}

// wrap says which call an error is of, and who caused it.
func (c *Comm) wrap(p *pending, err error) error {
	var done *collective.PeerError
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &collective.PeerError{
		Generation: c.config.Generation, Group: c.name, Sequence: p.sequence, Rank: c.rank, Global: c.ranks,
		Call: textOf(p.call), Label: p.call.Label,
	}
	e.Peer, e.Err = culprit(c.ranks, err)
	return e
}

func textOf(c collective.Call) string {
	s := c.Kind.String()
	if c.Kind.Reduces() {
		s += " " + c.Op.String()
	}
	if c.Kind == plan.Barrier {
		return s
	}
	return fmt.Sprintf("%s of %d %v", s, max(c.In.Len, c.Out.Len), typeOf(&c))
}

// issue starts the queue's calls in order.
func (c *Comm) issue() {
	defer close(c.flying)
	for {
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			c.drain()
			return
		}
		for {
			c.mu.Lock()
			if len(c.queue) == 0 || c.ctx.Err() != nil {
				c.mu.Unlock()
				break
			}
			p := c.queue[0]
			c.queue = c.queue[1:]
			now := time.Now()
			p.deadline, p.began = now.Add(c.config.Timeout), now.UnixNano()
			c.open, c.began = append(c.open, p), now
			c.mu.Unlock()
			if err := c.run(p); err != nil {
				c.hung.Store(true)
				p.end(c.die(p, err))
			}
		}
	}
}

// drain ends what death has left in the queue.
func (c *Comm) drain() {
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, p := range queue {
		p.end(c.wrap(p, context.Cause(c.ctx)))
	}
	c.drainSelf()
}

// die ends this rank's Comms by a call's failure and returns its error.
func (c *Comm) die(p *pending, err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return c.wrap(p, cause)
	}
	return c.wrap(p, c.job.die(c.wrap(p, err)))
}

// fly sends a pass on its way as soon as a slot is free. After an error the call
// is not going to end by itself.
func (c *Comm) fly(p *pending, way *pass) error {
	var s *slot
	select {
	case s = <-c.free:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	if err := c.load(p, s, way); err != nil {
		return err
	}
	s.pass, s.work = way, p
	c.flying <- s
	return nil
}

// load fills a slot and its streams.
func (c *Comm) load(p *pending, s *slot, way *pass) error {
	ctx, cancel := context.WithDeadline(p.ctx, p.deadline)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	if !s.fits(way) {
		if err := c.issuing.DoContext(ctx, func() error { return s.fit(c.device, way) }); err != nil {
			return c.given(p, err)
		}
	}
	if way.fill != nil {
		way.fill(s.hostIn.Bytes[:way.inBytes])
	}
	// The first call of a kind makes connections and may block in the library.
	return c.given(p, c.issuing.DoContext(ctx, func() error { return c.enqueue(s, way) }))
}

// given puts the reason into a context's error.
func (c *Comm) given(p *pending, err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch {
	case context.Cause(c.ctx) != nil:
		return context.Cause(c.ctx)
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	}
	return c.timedOut()
}

// timedOut is the error of what has taken too long. Whom HCCL waits for it does not
// tell; somebody else may have.
func (c *Comm) timedOut() error {
	return c.suspected(c.ranks, fmt.Errorf("no end after %v: %w", c.config.Timeout, context.DeadlineExceeded))
}

// through is fly that waits until the pass has ended.
func (c *Comm) through(p *pending, way *pass) error {
	way.ended = make(chan error, 1)
	if err := c.fly(p, way); err != nil {
		return err
	}
	return <-way.ended
}

// land waits for passes in their order, hands out what they brought and ends
// their calls.
func (c *Comm) land() {
	for s := range c.flying {
		way, p := s.pass, s.work
		err := c.watchPass(s, p)
		if err == nil {
			c.record(s, p)
			if way.take != nil {
				var host []byte // of the slot, unless the result went elsewhere
				if way.target == 0 {
					host = s.hostOut.Bytes[:way.outBytes]
				}
				err = way.take(host)
			}
		}
		s.pass, s.work = nil, nil
		if err != nil {
			c.hung.Store(true)
			err = c.die(p, err)
		} else {
			c.free <- s
		}
		switch {
		case way.ended != nil:
			way.ended <- err
		case err != nil:
			p.end(err)
		case way.last:
			p.end(nil)
		}
	}
}

// slice is how long the waiting thread sleeps in the library before it looks
// whether the call still has time and the communicator is well.
const slice = 20 * time.Millisecond

// watchPass waits for a pass, on the waiting thread.
func (c *Comm) watchPass(s *slot, p *pending) error {
	for {
		passed := false
		err := c.waiting.Do(func() error {
			err := c.device.SyncEvent(s.done, slice)
			if passed = err == nil; !passed && !isCode(err, ascend.EventTimeout) {
				return c.ran(err, c.name)
			}
			if err := c.asyncError(); err != nil || passed {
				return err
			}
			for _, stream := range []ascend.Stream{c.in, c.running, c.out} {
				if err := c.device.SyncStream(stream, 0); err != nil && !isCode(err, ascend.StreamTimeout) {
					return c.ran(err, c.name)
				}
			}
			return nil
		})
		switch {
		case err != nil || passed:
			return err
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case p.ctx.Err() != nil:
			return p.ctx.Err()
		case time.Now().After(p.deadline):
			return c.timedOut()
		}
	}
}

func isCode(err error, code int32) bool {
	var call *ascend.CallError
	return errors.As(err, &call) && call.Code == code
}
