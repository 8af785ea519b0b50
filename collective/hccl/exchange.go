//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

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
	queue  []*message // under comm.mu
	failed bool       // the stream may have work that never ends

	thread *ascend.Thread
	handle uintptr
	stream ascend.Stream
	host   ascend.Pinned
	memory ascend.Memory
}

// message is one part of an Exchange.
type message struct {
	ctx context.Context
	buf device.Buf
	end func(error)
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
		case part.Buf.Len > 0 && part.Buf.Bytes() == nil:
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
		m := &message{ctx: ctx, buf: part.Buf, end: one}
		if !part.Recv && part.Buf.Size() <= collective.EagerSize {
			m.buf = device.FromBytes(part.Buf.Type, bytes.Clone(part.Buf.Bytes()))
			m.end = func(error) {}
			defer one(nil)
		}
		c.post(lane{part.Peer, part.Recv}, m)
	}
	return w
}

// post puts a message into its lane.
func (c *Comm) post(at lane, m *message) {
	c.mu.Lock()
	if cause := context.Cause(c.ctx); cause != nil {
		c.mu.Unlock()
		m.end(cause)
		return
	}
	l := c.lanes[at]
	if l == nil {
		l = &channel{lane: at, comm: c, wake: make(chan struct{}, 1)}
		from, to := c.ranks[c.rank], c.ranks[at.peer]
		if at.recv {
			from, to = to, from
		}
		l.name = fmt.Sprintf("%s.from%d.to%d", c.name, from, to)
		c.lanes[at] = l
		if at.peer != c.rank {
			c.owned.Go(l.loop)
		}
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
	err := l.open()
	for err == nil {
		c.mu.Lock()
		var m *message
		if len(l.queue) > 0 {
			m = l.queue[0]
			l.queue = l.queue[1:]
		}
		c.mu.Unlock()
		if m == nil {
			select {
			case <-l.wake:
			case <-c.ctx.Done():
				err = context.Cause(c.ctx)
			}
			continue
		}
		if err = l.carry(m); err != nil {
			l.failed = true
			err = l.wrap(m, err)
		}
		m.end(err)
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
		m.end(context.Cause(c.ctx))
	}
}

func (l *channel) wrap(m *message, err error) error {
	if errors.Is(err, collective.ErrClosed) {
		return err
	}
	what := "send"
	if l.recv {
		what = "receive"
	}
	return &collective.PeerError{
		Generation: l.comm.config.Generation, Group: l.name, Rank: l.comm.rank, Peer: l.peer, Global: l.comm.ranks,
		Call: fmt.Sprintf("%s of %d %v", what, m.buf.Len, m.buf.Type), Err: err,
	}
}

// open makes the lane's communicator when its first message comes; the peer does
// the same.
func (l *channel) open() (err error) {
	c := l.comm
	if l.thread, err = c.device.NewThread(); err != nil {
		return err
	}
	from, to := c.ranks[c.rank], c.ranks[l.peer]
	if l.recv {
		from, to = to, from
	}
	if l.handle, err = c.join(c.ctx, l.thread, l.name, []int{from, to}, making{mb: pairBufferMB}); err != nil {
		return err
	}
	return l.thread.Do(func() (err error) {
		l.stream, err = c.device.NewStream()
		return err
	})
}

// carry moves one message.
func (l *channel) carry(m *message) error {
	c, size := l.comm, m.buf.Size()
	if size == 0 {
		return nil
	}
	d := c.device
	deadline := time.Now().Add(c.config.Timeout)
	err := l.thread.Do(func() (err error) {
		if err := errors.Join(d.GrowHost(&l.host, size), d.Grow(&l.memory, size)); err != nil {
			return c.ran(err, l.name)
		}
		it := item{direction: itemSend, buffer: l.memory.At, count: uint64(m.buf.Len), typ: int32(c.chip.moved(m.buf.Type))}
		if l.recv { // the communicator has the sender first
			it.direction, it.peer = itemRecv, 0
		} else {
			it.peer = 1
			copy(l.host.Bytes, m.buf.Bytes())
			if err := d.CopyAsync(l.memory.At, l.host.At(), size, ascend.HostToDevice, l.stream); err != nil {
				return c.ran(err, l.name)
			}
		}
		code := ascend.Call(c.library.HcclBatchSendRecv, uintptr(unsafe.Pointer(&it)), 1, l.handle, uintptr(l.stream))
		if err := c.job.failed("HcclBatchSendRecv", l.name, code); err != nil || !l.recv {
			return err
		}
		return c.ran(d.CopyAsync(l.host.At(), l.memory.At, size, ascend.DeviceToHost, l.stream), l.name)
	})
	for passed := false; err == nil && !passed; {
		err = l.thread.Do(func() error {
			err := d.SyncStream(l.stream, slice)
			passed = err == nil
			if isCode(err, ascend.StreamTimeout) {
				return nil
			}
			return c.ran(err, l.name)
		})
		switch {
		case err != nil || passed:
		case c.ctx.Err() != nil:
			err = context.Cause(c.ctx)
		case m.ctx.Err() != nil:
			err = m.ctx.Err()
		case time.Now().After(deadline):
			err = c.timedOut()
		}
	}
	if err == nil && l.recv {
		copy(m.buf.Bytes(), l.host.Bytes[:size])
	}
	return err
}

// close frees what the lane has.
func (l *channel) close() {
	if l.thread == nil {
		return
	}
	d := l.comm.device
	if l.failed {
		_ = l.thread.Do(func() error { return d.AbortStream(l.stream) })
	}
	_ = l.comm.destroy(l.thread, l.name, l.handle)
	_ = l.thread.Do(func() error {
		if l.stream != 0 {
			_ = d.DestroyStream(l.stream, l.failed)
		}
		return errors.Join(d.FreeHost(l.host), d.Free(l.memory))
	})
	l.thread.Close()
}
