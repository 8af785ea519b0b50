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
			n, err := syscall.Write(int(fd), a.b)
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

// polled reads once without waiting.
type polled struct {
	b    []byte
	n    int
	err  error
	once func(fd uintptr) bool
}

func (p *polled) prepare() {
	p.once = func(fd uintptr) bool {
		for {
			n, err := syscall.Read(int(fd), p.b)
			switch {
			case err == syscall.EINTR:
				continue
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

// read returns what there is; 0 and no error when that is nothing.
func (p *polled) read(raw syscall.RawConn, b []byte) (int, error) {
	p.b, p.n, p.err = b, 0, nil
	err := raw.Read(p.once)
	p.b = nil
	if err == nil {
		err = p.err
	}
	return p.n, err
}
