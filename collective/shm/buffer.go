//go:build linux && (amd64 || arm64)

package shm

import (
	"math/bits"
	"sync"
)

// buffer is memory of this process for a message on its way.
type buffer struct {
	class int
	b     []byte // what is used of it
}

// buffers keeps buffers by powers of two, from 64 bytes on.
type buffers [26]sync.Pool

func (p *buffers) get(n int) *buffer {
	class := max(bits.Len(uint(n-1)), 6) - 6
	if n <= 64 {
		class = 0
	}
	if class >= len(p) {
		return &buffer{class: class, b: make([]byte, n)}
	}
	f, _ := p[class].Get().(*buffer)
	if f == nil {
		f = &buffer{class: class, b: make([]byte, 64<<class)}
	}
	f.b = f.b[:n]
	return f
}

func (p *buffers) put(f *buffer) {
	if f.class < len(p) {
		p[f.class].Put(f)
	}
}
