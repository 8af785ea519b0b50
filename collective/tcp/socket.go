package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is one connection of a link and what lets it survive: the frames that
// the peer has not handled yet, and the number of those handled here. Whoever
// holds reading may read, whoever has set out.busy may write. The connection is
// replaced by the reader's goroutine, with both of them and the link's lock.
type socket struct {
	link  *link
	index int

	conn net.Conn
	tcp  *net.TCPConn    // conn, or what is under its encryption
	raw  syscall.RawConn // nil: encrypted, only conn reads and writes

	reading  sync.Mutex
	failed   error         // what ended the stream; guarded by reading
	call     chan struct{} // wakes the reader's goroutine: nobody else reads now
	polled   polled
	wakes    threshold // guarded by reading
	made     time.Time
	polledAt atomic.Int64 // when a waiter last read, in nanoseconds since made, whatever the clock is set to
	in       input
	out      output

	tries int    // attempts to repair since something moved
	known uint32 // progress at the last repair

	fresh chan arrived  // connections by which the peer wants to go on
	stop  chan struct{} // closed when the goroutines shall end
	ended chan struct{} // closed when the reader's goroutine has
}

// arrived is an authenticated connection of a peer that wants to go on with it.
type arrived struct {
	conn  net.Conn
	count uint32 // frames that the peer has handled
}

func newSocket(l *link, index int) *socket {
	s := &socket{
		link: l, index: index, made: time.Now(),
		call:  make(chan struct{}, 1),
		fresh: make(chan arrived, 1),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	s.in.buf = make([]byte, readAhead)
	s.out.kick = make(chan struct{}, 1)
	s.out.idle.L = &s.out.mu
	s.polled.prepare()
	s.wakes.prepare()
	s.wakes.prepare()
	s.out.attempt.prepare()
	return s
}

// errOver is why a peer cannot go on with a socket.
var errOver = errors.New("this rank has given up the link")

// attach gives the socket its connection.
func (s *socket) attach(conn net.Conn) error {
	under, ok := underlying(conn).(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T is no TCP connection", conn)
	}
	s.conn, s.tcp, s.raw = conn, under, nil
	if conn == net.Conn(under) {
		raw, err := under.SyscallConn()
		if err != nil {
			return err
		}
		s.raw = raw
	}
	return nil
}

// run reads until the stream has ended for good.
func (s *socket) run(ctx context.Context) {
	defer close(s.ended)
	for {
		err := s.readAll()
		if cause := s.repair(ctx, err); cause != nil {
			s.link.end(cause)
			return
		}
	}
}

// offer takes over a connection of the peer, unless the socket is over.
func (s *socket) offer(ctx context.Context, a arrived) error {
	s.link.mu.Lock()
	old := s.tcp
	s.link.mu.Unlock()
	for {
		select {
		case s.fresh <- a:
			_ = old.CloseRead() // in case this side has not noticed
			return nil
		case <-s.ended:
			return fmt.Errorf("%w to rank %d", errOver, s.link.peer)
		case <-ctx.Done():
			return ctx.Err()
		case unused := <-s.fresh: // the peer has given it up
			_ = unused.conn.Close()
		}
	}
}

// bury closes what is left when the goroutines have ended.
func (s *socket) bury() {
	s.out.bury(s.link.transport)
	select {
	case a := <-s.fresh:
		_ = a.conn.Close()
	default:
	}
}
