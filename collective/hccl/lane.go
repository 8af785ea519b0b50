//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
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
	if e.Peer, e.Err = culprit(c.ranks, err); e.Peer < 0 && !errors.As(err, new(*lost)) {
		e.Peer = l.peer
	}
	return e
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
