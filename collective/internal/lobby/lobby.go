// Package lobby bounds the connections that have proved nothing yet, so that a
// port scan or somebody who connects and keeps silent cannot hold up those who
// belong here: when it is full, whoever has been in it longest is put out.
// Members pass within milliseconds.
package lobby

import (
	"errors"
	"net"
	"slices"
	"sync"
)

// ErrFull says why a connection was put out.
var ErrFull = errors.New("put out for newer connections before it had proved anything")

// Lobby holds at most Size connections. Its fields but Size are private; the
// zero value with a Size is empty. It is safe for concurrent use.
type Lobby struct {
	Size int

	mu    sync.Mutex
	inner []net.Conn // the oldest first
}

// Enter lets conn in, and puts the oldest out when that is one too many.
func (l *Lobby) Enter(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inner = append(l.inner, conn)
	if len(l.inner) > l.Size {
		_ = l.inner[0].Close()
		l.inner = slices.Delete(l.inner, 0, 1)
	}
}

// Leave lets conn out. It returns ErrFull when conn had been put out.
func (l *Lobby) Leave(conn net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.inner, conn)
	if at < 0 {
		return ErrFull
	}
	l.inner = slices.Delete(l.inner, at, at+1)
	return nil
}
