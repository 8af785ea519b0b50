package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
	"github.com/gradfusion/gradfusion/collective/internal/lobby"
)

const (
	purpose = "GFSTORE1"
	// maxStrangers may be in their greeting, each for greetingTime.
	greetingTime = 10 * time.Second
	maxStrangers = 256
)

// Server serves one table. It is safe for concurrent use.
type Server struct {
	listener net.Listener
	token    string
	table    *table
	lobby    lobby.Lobby // of who has proved nothing yet

	mu       sync.Mutex
	sessions map[*session]struct{}
	joined   int // sessions that have proved the token
	idle     chan struct{}
	closed   bool
	ended    chan struct{}
	running  sync.WaitGroup
}

// Listen serves a new table on address and on no other: 127.0.0.1 stays on the
// loopback interface.
func Listen(ctx context.Context, address, token string) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("store: address %s is in use: another job may run there; choose another port (MASTER_PORT), or 0 for a free one: %w", address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("store: address %s is not one of this host's: the store runs on rank 0's host, so MASTER_ADDR must name it: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("store: listen on %s: %w", address, err)
	}
	return Serve(listener, token), nil
}

// Serve serves a new table on a listener, which it owns from now on.
func Serve(listener net.Listener, token string) *Server {
	s := &Server{
		listener: listener,
		token:    token,
		table:    newTable(),
		lobby:    lobby.Lobby{Size: maxStrangers},
		sessions: map[*session]struct{}{},
		idle:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	close(s.idle)
	s.running.Go(s.accept)
	return s
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Drain waits until no client is connected: what rank 0 does before Close, so
// that a rank which is still reading its last key is not cut off.
func (s *Server) Drain(ctx context.Context) error {
	for {
		s.mu.Lock()
		joined, idle := s.joined, s.idle
		s.mu.Unlock()
		if joined == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("store %s: %d clients are still connected: %w", s.Addr(), joined, ctx.Err())
		}
	}
}

// Close cuts off all clients, frees the address and waits for all goroutines.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		close(s.ended)
	}
	s.closed = true
	for c := range s.sessions {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.pause() // the stranger is gone already, or descriptors are short for a moment
			continue
		}
		c := &session{server: s, conn: conn, waits: map[uint64]*waiter{}, out: make(chan message, maxAnswers)}
		s.mu.Lock()
		if s.closed {
			_ = conn.Close()
		}
		s.sessions[c] = struct{}{}
		s.mu.Unlock()
		s.lobby.Enter(conn)
		s.running.Go(func() { s.serve(c) })
	}
}

// pause keeps a listener that fails again and again from taking a core.
func (s *Server) pause() {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ended:
	}
}

func (s *Server) serve(c *session) {
	_ = c.conn.SetDeadline(time.Now().Add(greetingTime))
	err := challenge.Accept(c.conn, purpose, s.token)
	if out := s.lobby.Leave(c.conn); err == nil {
		err = out
	}
	if err == nil {
		_ = c.conn.SetDeadline(time.Time{})
		s.count(1)
		c.run()
		s.count(-1)
	}
	_ = c.conn.Close()
	s.mu.Lock()
	delete(s.sessions, c)
	s.mu.Unlock()
}

func (s *Server) count(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined == 0 {
		s.idle = make(chan struct{})
	}
	if s.joined += change; s.joined == 0 {
		close(s.idle)
	}
}
