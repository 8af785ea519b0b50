package tcp

import "sync"

// frame is a frame on its way out, or the memory of an eager message that nobody
// has asked for yet. It is in at most one list.
type frame struct {
	next  *frame
	class int
	b     []byte // what is used of it
	sent  int    // bytes that this connection has taken, part and trailer counted

	// Of a Data frame whose bytes are in the caller's memory; b is its header.
	part   []byte
	send   *send
	serial uint64 // the send is over when its serial differs
}

// length is all that has to be written.
func (f *frame) length() int {
	if f.part == nil {
		return len(f.b)
	}
	return len(f.b) + len(f.part) + trailerLen
}

// The sizes that the pool keeps, and how much of each.
var poolSizes = [...]int{128, 1 << 10, 8 << 10, headerLen + eagerMax + fillRoom + trailerLen}

// fillRoom is how much more than a message SendFilled's memory may be.
const fillRoom = 4 << 10

const poolKeep = 8 << 20

type framePool struct {
	mu   sync.Mutex
	free [len(poolSizes)]*frame
	kept [len(poolSizes)]int
}

// get returns a frame of n bytes, at most the last of poolSizes.
func (p *framePool) get(n int) *frame {
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
		f = &frame{class: class, b: make([]byte, poolSizes[class])}
	}
	*f = frame{class: class, b: f.b[:n]}
	return f
}

func (p *framePool) put(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept[f.class] >= poolKeep {
		return
	}
	f.part, f.send = nil, nil
	f.next = p.free[f.class]
	p.free[f.class] = f
	p.kept[f.class] += poolSizes[f.class]
}
