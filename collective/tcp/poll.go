package tcp

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// pollTime is how long a waiter looks at the socket itself before it sleeps:
	// about what waking it costs.
	pollTime = 50 * time.Microsecond
	// politeAfter is how many looks at the socket find nothing before others may
	// run in between: the peer may need this very processor.
	politeAfter = 8
	// shortWait is what a wait has to take at most for the next one to poll.
	shortWait = 200 * time.Microsecond
	// leastPatience ends polling after a few waits that were long.
	leastPatience = 3 * time.Microsecond
	// standInTime is how long a socket may lie unread while nobody waits, after
	// a waiter has read it.
	standInTime = time.Millisecond
	// rarely is the number of bytes at which the kernel wakes nobody before
	// standInTime is over, as a rule.
	rarely = 1 << 20
	// longWait is what makes a waiter one that does not mind standInTime: whoever
	// waits for a peer's notices, as a rule.
	longWait = 10 * time.Millisecond
)

// waiters lists who sleeps until a message moves, newest first.
type waiters struct {
	mu    sync.Mutex
	first *waiter
	spare *waiter
}

type waiter struct {
	next, before *waiter
	since        time.Time
	done         *ending
}

func (w *waiters) add(since time.Time, done *ending) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spare
	if one == nil {
		one = &waiter{}
	} else {
		w.spare = one.next
	}
	*one = waiter{next: w.first, since: since, done: done}
	if w.first != nil {
		w.first.before = one
	}
	w.first = one
	return one
}

func (w *waiters) remove(one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.before == nil {
		w.first = one.next
	} else {
		one.before.next = one.next
	}
	if one.next != nil {
		one.next.before = one.before
	}
	*one = waiter{next: w.spare}
	w.spare = one
}

// any reports whether somebody waits who must not wait longer for a reader.
func (w *waiters) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := w.first; one != nil && time.Since(one.since) < longWait; one = one.next {
		if !one.done.over.Load() {
			return true
		}
	}
	return false
}

// pressing reports whether the link must be read at once.
func (l *link) pressing() bool { return l.streams.Load() > 0 || l.waiting.any() }

// await waits for done or, false, the end of ctx. For a short while it reads the
// link's first socket itself, when nobody else does and that has paid off:
// waking the goroutine that reads and this one costs more than the message.
func (l *link) await(ctx context.Context, done *ending) bool {
	select {
	case <-done.c:
		return true
	default:
	}
	start := time.Now()
	ended := l.pollFor(ctx, done, start)
	if !ended {
		one := l.waiting.add(start, done)
		if len(l.sockets) > 0 {
			l.sockets[0].callReader()
		}
		select {
		case <-done.c:
			ended = true
		case <-ctx.Done():
		}
		l.waiting.remove(one)
	}
	if time.Since(start) < shortWait {
		l.patience.Store(int64(pollTime))
	} else if p := l.patience.Load() / 2; p >= int64(leastPatience) {
		l.patience.Store(p)
	} else {
		l.patience.Store(0)
	}
	return ended
}

func (l *link) pollFor(ctx context.Context, done *ending, start time.Time) bool {
	patience := time.Duration(l.patience.Load())
	if patience == 0 || len(l.sockets) == 0 || !l.transport.polls {
		return false
	}
	s := l.sockets[0]
	if !s.reading.TryLock() {
		return false
	}
	if s.raw == nil {
		s.reading.Unlock()
		return false
	}
	ended := s.poll(ctx, done, start.Add(patience), patience)
	s.polledNow()
	s.reading.Unlock()
	if ended && l.pressing() {
		s.callReader()
	}
	return ended
}

// poll handles what arrives until done, or until nothing has for some time.
func (s *socket) poll(ctx context.Context, done *ending, until time.Time, patience time.Duration) bool {
	for looks := 0; s.failed == nil; looks++ {
		moved, err := s.pump(false)
		if err != nil {
			s.failed = err
			return false
		}
		if moved && s.in.phase != phaseHeader {
			continue
		}
		select {
		case <-done.c:
			return s.in.from == s.in.to || s.finishRead()
		case <-ctx.Done():
			return false
		default:
		}
		now := time.Now()
		switch {
		case moved:
			until = now.Add(patience)
			looks = 0
		case now.After(until):
			return false
		case looks >= politeAfter:
			yieldThread()
		}
	}
	return false
}

// finishRead handles what has been read ahead, which nobody else would see.
func (s *socket) finishRead() bool {
	for s.in.to-s.in.from >= headerLen || s.in.phase != phaseHeader && s.in.from < s.in.to {
		if _, err := s.pump(false); err != nil {
			s.failed = err
			s.callReader()
			break
		}
	}
	return true
}

// callReader has the reader's goroutine read, if nobody does.
func (s *socket) callReader() {
	select {
	case s.call <- struct{}{}:
	default:
	}
}

// readAll reads until the stream ends. While waiters read by themselves it
// stays away: a goroutine that the kernel wakes for each message would cost
// them more than it helps.
func (s *socket) readAll() error {
	standIn := time.NewTimer(standInTime)
	defer standIn.Stop()
	for {
		if err := s.readUntilIdle(); err != nil {
			return err
		}
		select {
		case <-s.call: // of somebody who has been served
		default:
		}
		for away := true; away && !s.link.pressing(); {
			standIn.Reset(standInTime)
			select {
			case <-s.call:
				away = false
			case <-standIn.C:
				away = time.Since(s.made)-time.Duration(s.polledAt.Load()) < standInTime
			case <-s.stop:
				away = false
			}
		}
	}
}

// readUntilIdle reads until the stream ends or the waiters may read by
// themselves.
func (s *socket) readUntilIdle() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.raw != nil {
		s.wakes.set(s.raw, 1)
	}
	for s.failed == nil {
		_, s.failed = s.pump(true)
		if s.failed == nil && s.mayLeave() {
			s.wakes.set(s.raw, rarely)
			s.polledNow()
			return nil
		}
	}
	err := s.failed
	s.rollBack()
	return err
}

func (s *socket) polledNow() { s.polledAt.Store(int64(time.Since(s.made))) }

// mayLeave reports whether nobody is served any more, at the end of a frame,
// and the next waiter is going to poll.
func (s *socket) mayLeave() bool {
	in, l := &s.in, s.link
	return s.index == 0 && s.raw != nil && l.transport.polls && l.patience.Load() > 0 &&
		in.phase == phaseHeader && in.from == in.to && !l.pressing()
}

// canPollHere: with one processor polling would keep the peer's goroutine, or
// process, from sending.
func canPollHere() bool { return canPoll && runtime.GOMAXPROCS(0) > 1 }
