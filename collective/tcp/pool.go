package tcp

import "sync"

// buffer holds a frame on its way out or an eager message that nobody has asked
// for yet. It is in at most one list.
type buffer struct {
	next  *buffer
	class int
	b     []byte // what is used of it
	sent  int    // bytes of b that have been written
}

// The sizes that the pool keeps, and how much of each.
var poolSizes = [...]int{128, 1 << 10, 8 << 10, headerLen + eagerMax}

const poolKeep = 4 << 20

type bufferPool struct {
	mu   sync.Mutex
	free [len(poolSizes)]*buffer
	kept [len(poolSizes)]int
}

// get returns a buffer of n bytes, at most headerLen + eagerMax.
func (p *bufferPool) get(n int) *buffer {
	class := 0
	for poolSizes[class] < n {
		class++
	}
	p.mu.Lock()
	f := p.free[class]
	if f != nil {
		p.free[class] = f.next
		p.kept[class] -= poolSizes[class]
	}
	p.mu.Unlock()
	if f == nil {
		f = &buffer{class: class, b: make([]byte, poolSizes[class])}
	}
	f.next, f.sent, f.b = nil, 0, f.b[:n]
	return f
}

func (p *bufferPool) put(f *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept[f.class] >= poolKeep {
		return
	}
	f.next = p.free[f.class]
	p.free[f.class] = f
	p.kept[f.class] += poolSizes[f.class]
}
