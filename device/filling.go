package device

import (
	"slices"
	"sync"
)

// filler has the system back memory with pages before it is written, on a
// goroutine beside whoever computes: a first pass then does not stop at each page
// for the system to find and clear it. One goroutine does so, first what is needed
// first, and ends when nothing is left. The zero value is ready; it is
// safe for concurrent use.
type filler struct {
	mu      sync.Mutex
	queue   []*filling
	running sync.WaitGroup
	runs    bool
	closed  bool
	stepped *sync.Cond // a piece is done
}

// filling is memory that is being filled. A filler holds it, so that memory of the
// Go heap stays until it is done.
type filling struct {
	rest []byte
	busy bool // a piece is on its way
}

// add puts b before or behind what is to be filled. Once the filler is closed it
// does nothing.
func (f *filler) add(b []byte, before bool) *filling {
	m := &filling{rest: b}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	if f.stepped == nil {
		f.stepped = sync.NewCond(&f.mu)
	}
	if before {
		f.queue = slices.Insert(f.queue, 0, m)
	} else {
		f.queue = append(f.queue, m)
	}
	if !f.runs {
		f.runs = true
		f.running.Go(f.run)
	}
	return m
}

func (f *filler) run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) > 0 {
		m := f.queue[0]
		if len(m.rest) < hugePage {
			f.queue = slices.Delete(f.queue, 0, 1)
			continue
		}
		// In pieces, because mapping other memory waits for one.
		piece := m.rest[:hugePage]
		m.rest, m.busy = m.rest[hugePage:], true
		f.mu.Unlock()
		err := populate(piece)
		f.mu.Lock()
		m.busy = false
		if err != nil {
			m.rest = nil
		}
		f.stepped.Broadcast()
	}
	f.queue, f.runs = nil, false
}

// drop returns when m is filled no further; nil is nothing.
func (f *filler) drop(m *filling) {
	if m == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m.rest = nil
	for m.busy {
		f.stepped.Wait()
	}
}

// close drops everything and waits for the goroutine, which no other follows.
func (f *filler) close() {
	f.mu.Lock()
	f.closed = true
	for _, m := range f.queue {
		m.rest = nil
	}
	f.mu.Unlock()
	f.running.Wait()
}
