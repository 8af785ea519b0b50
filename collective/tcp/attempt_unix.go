//go:build unix

package tcp

import (
	"io"
	"syscall"
)

// attempt writes once without waiting. Its function is made once, so that a
// write allocates nothing.
type attempt struct {
	b    []byte
	n    int
	once func(fd uintptr) bool
}

func (a *attempt) prepare() {
	a.once = func(fd uintptr) bool {
		for {
			n, err := writeNow(int(fd), a.b)
			if err == syscall.EINTR {
				continue
			}
			a.n = max(n, 0) // an error is met again by the writer, who reports it
			return true
		}
	}
}

// write returns how many bytes of b the socket took.
func (a *attempt) write(raw syscall.RawConn, b []byte) int {
	a.b, a.n = b, 0
	_ = raw.Write(a.once)
	a.b = nil
	return a.n
}

const canPoll = true

// polled reads, without waiting or until there is something.
type polled struct {
	b    []byte
	wait bool
	n    int
	err  error
	once func(fd uintptr) bool
}

func (p *polled) prepare() {
	p.once = func(fd uintptr) bool {
		for {
			n, err := readNow(int(fd), p.b)
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN && p.wait:
				return false
			case err == syscall.EAGAIN:
				n, err = 0, nil
			case err == nil && n == 0:
				err = io.EOF
			}
			p.n, p.err = max(n, 0), err
			return true
		}
	}
}

// read returns what there is; 0 and no error when that is nothing, unless it is to wait.
func (p *polled) read(raw syscall.RawConn, b []byte, wait bool) (int, error) {
	p.b, p.wait, p.n, p.err = b, wait, 0, nil
	err := raw.Read(p.once)
	p.b = nil
	if err == nil {
		err = p.err
	}
	return p.n, err
}

// threshold is how many bytes have to wait in the socket before the kernel says
// so. While a waiter looks for itself, that would only wake a thread in vain,
// for every message.
type threshold struct {
	bytes int
	once  func(fd uintptr)
}

func (t *threshold) prepare() {
	t.once = func(fd uintptr) {
		// Where this is not known, threads wake in vain.
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, t.bytes)
	}
}

func (t *threshold) set(raw syscall.RawConn, bytes int) {
	if t.bytes != bytes {
		t.bytes = bytes
		_ = raw.Control(t.once)
	}
}

// reset is for a new socket.
func (t *threshold) reset() { t.bytes = 0 }
