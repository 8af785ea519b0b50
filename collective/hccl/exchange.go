//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// lane is one direction with one peer. HCCL matches sends and receives by their
// order, and one that waits holds its stream: so each lane has a communicator of
// its two ranks, a stream and a thread of its own, and nothing waits but for its
// own peer.
type lane struct {
	peer int
	recv bool
}

// channel carries out a lane's messages in order.
type channel struct {
	lane
	comm   *Comm
	name   string
	wake   chan struct{}
	failed bool // the stream may have work that never ends

	// Under comm.mu.
	queue   []*message
	current *message
	joining bool
	done    uint64    // messages carried out
	since   time.Time // when somebody was first seen to wait for the oldest message

	thread *ascend.Thread
	handle uintptr
	stream ascend.Stream
	host   ascend.Pinned
	memory ascend.Memory
}

// message is one part of an Exchange.
type message struct {
	ctx  context.Context
	work *collective.Work // nil: nobody waits for it
	buf  device.Buf
	end  func(error)
}

// pairBufferMB is the buffer of a communicator of two, which only passes
// messages on.
const pairBufferMB = 20

// Exchange implements collective.Comm. Sends up to collective.EagerSize end at
// once.
func (c *Comm) Exchange(ctx context.Context, batch []collective.PointToPoint) *collective.Work {
	w, end := collective.NewWork()
	if len(batch) == 0 {
		end(nil)
		return w
	}
	for _, part := range batch {
		switch {
		case !c.knows(part.Buf):
			end(fmt.Errorf("rank %d, communicator %s: exchange with rank %d: %w", c.rank, c.name, part.Peer, errUnreadable))
			return w
		case part.Peer < 0 || part.Peer >= len(c.ranks):
			end(fmt.Errorf("rank %d, communicator %s: exchange with rank %d of %d", c.rank, c.name, part.Peer, len(c.ranks)))
			return w
		}
	}
	var mu sync.Mutex
	left := len(batch)
	one := func(err error) {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if err != nil || last {
			end(err)
		}
	}
	for _, part := range batch {
		m := &message{ctx: ctx, work: w, buf: part.Buf, end: one}
		if !part.Recv && part.Buf.Size() <= collective.EagerSize && part.Buf.Handle == 0 {
			m.buf = device.FromBytes(part.Buf.Type, bytes.Clone(part.Buf.Bytes()))
			m.work, m.end = nil, func(error) {}
			defer one(nil)
		}
		c.post(lane{part.Peer, part.Recv}, m)
	}
	return w
}

// post puts a message into its lane.
func (c *Comm) post(at lane, m *message) {
	c.mu.Lock()
	l := c.lanes[at]
	if l == nil {
		l = &channel{lane: at, comm: c, wake: make(chan struct{}, 1), joining: true}
		from, to := c.ranks[c.rank], c.ranks[at.peer]
		if at.recv {
			from, to = to, from
		}
		l.name = fmt.Sprintf("%s.from%d.to%d", c.name, from, to)
		if c.ctx.Err() == nil {
			c.lanes[at] = l
			if at.peer != c.rank {
				c.owned.Go(l.loop)
			}
		}
	}
	if cause := context.Cause(c.ctx); cause != nil {
		c.mu.Unlock()
		m.end(l.wrap(m, cause))
		return
	}
	l.queue = append(l.queue, m)
	c.mu.Unlock()
	if at.peer == c.rank {
		c.toSelf()
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *channel) loop() {
	c := l.comm
	first, stop := l.guarded()
	defer stop()
	err := l.open(first)
	for ctx := first; err == nil; {
		m := l.next()
		if m == nil {
			select {
			case <-l.wake:
			case <-c.ctx.Done():
				err = context.Cause(c.ctx)
			}
			continue
		}
		if err = l.carry(ctx, m); err != nil {
			l.failed = true
			err = l.wrap(m, err)
		}
		l.passed(err)
		m.end(err)
		if ctx == first {
			ctx = c.ctx
			stop()
		}
	}
	if c.ctx.Err() == nil {
		c.job.die(err)
	}
	l.drain()
	l.close()
}

// drain ends what death has left in the lane; nothing is posted after that.
func (l *channel) drain() {
	c := l.comm
	c.mu.Lock()
	queue := l.queue
	l.queue = nil
	c.mu.Unlock()
	for _, m := range queue {
		m.end(l.wrap(m, context.Cause(c.ctx)))
	}
}

// open makes the lane's communicator when its first message comes; the peer does
// the same.
func (l *channel) open(ctx context.Context) (err error) {
	c := l.comm
	if l.thread, err = c.device.NewThread(); err != nil {
		return err
	}
	from, to := c.ranks[c.rank], c.ranks[l.peer]
	if l.recv {
		from, to = to, from
	}
	if l.handle, err = c.join(ctx, l.thread, l.name, []int{from, to}, making{mb: pairBufferMB}, func(string) {}); err != nil {
		return err
	}
	c.mu.Lock()
	l.joining = false
	c.mu.Unlock()
	return l.thread.Do(func() (err error) {
		l.stream, err = c.device.NewStream()
		return err
	})
}

// carry moves one message. ctx ends with the Comm, or before.
func (l *channel) carry(ctx context.Context, m *message) error {
	c, size := l.comm, m.buf.Size()
	if size == 0 {
		return nil
	}
	d := c.device
	err := l.fit(ctx, m)
	if err == nil && !l.recv && m.buf.Handle == 0 {
		copy(l.host.Bytes, m.buf.Bytes()) // not on the thread, which may be late
	}
	if err == nil {
		err = l.thread.DoContext(ctx, func() error { return l.enqueue(ctx, m) })
	}
	for passed := false; err == nil && !passed; {
		err = l.thread.Do(func() error {
			err := d.SyncStream(l.stream, slice)
			passed = err == nil
			if isCode(err, ascend.StreamTimeout) {
				return nil
			}
			return l.ofPeer(c.ran(err, l.name))
		})
		switch {
		case err != nil || passed:
		case ctx.Err() != nil:
			err = ctx.Err()
		case m.ctx.Err() != nil:
			err = m.ctx.Err()
		case l.overdue():
			err = l.timedOut()
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if err = context.Cause(c.ctx); err == nil {
			err = l.timedOut()
		}
	}
	if err == nil && l.recv && m.buf.Handle == 0 {
		copy(m.buf.Bytes(), l.host.Bytes[:size])
	}
	return err
}
