//go:build unix

package tcp

import "syscall"

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
