//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// next takes the lane's oldest message from its queue, or nil.
func (l *channel) next() *message {
	c := l.comm
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	l.current = l.queue[0]
	l.queue = l.queue[1:]
	return l.current
}

// passed notes that the current message has been carried out, or has failed.
func (l *channel) passed(err error) {
	c := l.comm
	c.mu.Lock()
	defer c.mu.Unlock()
	l.current, l.since = nil, time.Time{}
	if err == nil {
		l.done++
	}
}

// oldest is the message that has not ended, or nil; comm.mu is held.
func (l *channel) oldest() *message {
	if l.current == nil && len(l.queue) > 0 {
		return l.queue[0]
	}
	return l.current
}

// asked reports that somebody waits for the oldest message, or for one behind it, which
// comes no sooner: a receive that was posted ahead may be for a long time after. comm.mu
// is held.
func (l *channel) asked() bool {
	awaited := func(m *message) bool { return m != nil && m.work != nil && m.work.Awaited() }
	return awaited(l.current) || slices.ContainsFunc(l.queue, awaited)
}

// overdue reports that somebody has waited for as long as a call may take.
func (l *channel) overdue() bool {
	c := l.comm
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !l.asked():
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = time.Now()
	default:
		return time.Since(l.since) > c.config.Timeout
	}
	return false
}

func (l *channel) timedOut() error {
	c := l.comm
	return c.suspected(c.ranks, &peerFailure{c.ranks[l.peer], fmt.Errorf("waited %v for it: %w", c.config.Timeout, context.DeadlineExceeded)})
}

func (l *channel) wrap(m *message, err error) error {
	var done *collective.PeerError
	if err == nil || errors.Is(err, collective.ErrClosed) || errors.As(err, &done) {
		return err
	}
	c := l.comm
	e := &collective.PeerError{Generation: c.config.Generation, Group: l.name, Rank: c.rank, Global: c.ranks, Call: l.about(m)}
	e.Peer, e.Err = culprit(c.ranks, err)
	return e
}

// ofPeer blames the lane's peer for what HCCL reports of a message. A failure of this
// rank's device, or in the making of another communicator, which ends this one, is not
// that peer's.
func (l *channel) ofPeer(err error) error {
	if !errors.As(err, new(*Error)) {
		return err
	}
	return &peerFailure{l.comm.ranks[l.peer], err}
}

func (l *channel) about(m *message) string {
	what := "send"
	if l.recv {
		what = "receive"
	}
	return fmt.Sprintf("%s of %d %v", what, m.buf.Len, m.buf.Type)
}

// waited is the cause of a context whose time is over.
func waited(limit time.Duration) error {
	return fmt.Errorf("waited %v: %w", limit, context.DeadlineExceeded)
}

// guarded is a context that ends with the Comm, and when the lane is overdue: until its
// first message has passed it may block in the library, where it does not look.
func (l *channel) guarded() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(l.comm.ctx)
	var guard sync.WaitGroup
	guard.Go(func() {
		ticker := time.NewTicker(slice)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if l.overdue() {
				cancel(waited(l.comm.config.Timeout))
				return
			}
		}
	})
	return ctx, func() { cancel(nil); guard.Wait() }
}

// fit makes room for a message.
func (l *channel) fit(ctx context.Context, m *message) error {
	size, onHost := m.buf.Size(), m.buf.Handle == 0
	if l.memory.Size >= size && (!onHost || len(l.host.Bytes) >= size) {
		return nil
	}
	c := l.comm
	return l.thread.DoContext(ctx, func() (err error) {
		if onHost {
			err = c.device.GrowHost(&l.host, size)
		}
		return c.ran(errors.Join(err, c.device.Grow(&l.memory, size)), l.name)
	})
}

// enqueue puts a message, of which there is one at a time, into the stream.
func (l *channel) enqueue(ctx context.Context, m *message) error {
	if ctx.Err() != nil { // nobody waits for this any more
		return ctx.Err()
	}
	c, d, size := l.comm, l.comm.device, m.buf.Size()
	it := item{direction: itemSend, buffer: l.memory.At, count: uint64(m.buf.Len), typ: int32(c.chip.moved(m.buf.Type))}
	if l.recv { // the communicator has the sender first
		it.direction, it.peer = itemRecv, 0
	} else {
		it.peer = 1
		from, kind := m.buf.Handle, ascend.DeviceToDevice
		if from == 0 {
			from, kind = l.host.At(), ascend.HostToDevice
		}
		if err := d.CopyAsync(l.memory.At, from, size, kind, l.stream); err != nil {
			return c.ran(err, l.name)
		}
	}
	code := ascend.Call(c.library.HcclBatchSendRecv, uintptr(unsafe.Pointer(&it)), 1, l.handle, uintptr(l.stream))
	if err := c.job.failed("HcclBatchSendRecv", l.name, code); err != nil || !l.recv {
		return l.ofPeer(err)
	}
	to, kind := m.buf.Handle, ascend.DeviceToDevice
	if to == 0 {
		to, kind = l.host.At(), ascend.DeviceToHost
	}
	return c.ran(d.CopyAsync(to, l.memory.At, size, kind, l.stream), l.name)
}

// close frees what the lane has. As release it has limited patience.
func (l *channel) close() {
	if l.thread == nil {
		return
	}
	d := l.comm.device
	ctx, stop := patience(true)
	defer stop()
	other := l.comm.waiting // the lane's own may block in the library
	if l.failed && l.stream != 0 {
		_ = other.DoContext(ctx, func() error { return d.AbortStream(l.stream) })
	}
	_ = l.comm.destroy(ctx, other, l.name, l.handle)
	_ = l.thread.DoContext(ctx, func() error {
		if l.stream != 0 {
			_ = d.DestroyStream(l.stream, l.failed)
		}
		return errors.Join(d.FreeHost(l.host), d.Free(l.memory))
	})
	if !l.thread.CloseBefore(ctx) {
		l.comm.held.Store(true)
		d.Abandon()
	}
}
