package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	firstPause = 10 * time.Millisecond // between attempts, doubled each time
	lastPause  = time.Second
	resumeTime = 5 * time.Second // for the peer to come back, which has been seen to live
)

// repair builds the connection up again after err and continues where it broke.
// It returns why that is not possible. The peer that dialed at first dials
// again; the other looks whether that peer still listens and waits for it.
func (s *socket) repair(ctx context.Context, err error) error {
	t := s.link.transport
	if !s.mayRepair(err) {
		return plainly(err)
	}
	s.link.mu.Lock()
	_ = s.conn.Close()
	s.link.mu.Unlock()
	s.out.stopWriting()
	if n := s.out.progress(); n != s.known {
		s.known, s.tries = n, 0
	}
	broke := brokeText(err)
	pause := firstPause
	for s.tries < t.door.Retry {
		s.tries++
		a, again := s.reconnect(ctx)
		if again == nil {
			again = s.install(a)
		}
		switch {
		case again == nil:
			return nil
		case ctx.Err() != nil:
			return plainly(err)
		case errors.Is(again, errRefused):
			return fmt.Errorf("%s, and it cannot be built up again: %w", broke, again)
		case errors.Is(again, syscall.ECONNREFUSED):
			return fmt.Errorf("%s, and it no longer listens (has its process died?): %w", broke, again)
		}
		err = again
		rest(ctx, pause)
		pause = min(2*pause, lastPause)
	}
	return fmt.Errorf("%s, and %d attempts to build it up again failed, the last because: %w", broke, t.door.Retry, err)
}

// mayRepair reports whether err, which ended the stream, is worth an attempt.
func (s *socket) mayRepair(err error) bool {
	t := s.link.transport
	if t.door == nil || t.door.Retry == 0 || !isBroken(err) || t.lostSomebody() {
		return false
	}
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.left == nil
}

// brokeText says how a connection broke, without a goodbye.
func brokeText(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "its connection ended without a goodbye"
	}
	return fmt.Sprintf("its connection broke (%v)", err)
}

// reconnect gets a new connection for the socket.
func (s *socket) reconnect(ctx context.Context) (arrived, error) {
	l, door := s.link, s.link.transport.door
	h := hello{wish: wishResume, index: s.index, to: l.peer, handled: s.out.handled.Load()}
	if l.peer < l.transport.rank {
		conn, count, err := door.dial(ctx, l.peer, h)
		return arrived{conn, count}, err
	}
	var a arrived
	select {
	case a = <-s.fresh:
	default:
		h.wish = wishProbe
		conn, _, err := door.dial(ctx, l.peer, h)
		if err != nil {
			return a, err
		}
		_ = conn.Close()
		timer := time.NewTimer(resumeTime)
		defer timer.Stop()
		select {
		case a = <-s.fresh:
		case <-timer.C:
			return a, fmt.Errorf("rank %d lives but did not connect again within %v", l.peer, resumeTime)
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	if err := answer(a.conn, "", h.handled); err != nil {
		_ = a.conn.Close()
		return a, err
	}
	return a, nil
}

// install goes on with a new connection.
func (s *socket) install(a arrived) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	err := a.conn.SetDeadline(time.Time{})
	s.link.mu.Lock()
	if err == nil {
		err = s.attach(a.conn)
	}
	s.link.mu.Unlock()
	if err == nil {
		err = s.out.rewind(s.link.transport, a.count)
	}
	if err != nil {
		_ = a.conn.Close()
		return err
	}
	s.failed = nil
	s.wakes.reset()
	s.out.wake()
	return nil
}

// progress changes when frames move.
func (o *output) progress() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handled.Load() + o.acked
}

// end says what the end of a stream means.
func (l *link) end(err error) {
	l.mu.Lock()
	left := l.left != nil
	l.mu.Unlock()
	if !left {
		l.transport.fail(l.peer, err)
	}
	l.part()
}

// plainly says what the end of a connection means that is not repaired.
func plainly(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its connection ended without a goodbye (has its process died?)")
	case errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("its connection was reset (has its process died?): %w", syscall.ECONNRESET)
	}
	return err
}

// rest pauses.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tune sets a socket's options.
func (c Config) tune(conn *net.TCPConn) error {
	withinHost(conn)
	if err := conn.SetNoDelay(true); err != nil || c.Buffer == 0 {
		return err
	}
	if err := conn.SetReadBuffer(c.Buffer); err != nil {
		return err
	}
	return conn.SetWriteBuffer(c.Buffer)
}
