package device

import "fmt"

// Arena hands out buffers of a device and takes them back, keyed by their exact
// type and length: a training step asks for the same shapes again and again, so
// after the first step nothing is allocated. An Arena is used by one goroutine.
type Arena struct {
	// Freed, when set, sees each buffer that comes back: tests fill it with
	// NaN to prove that nobody reads it any more.
	Freed func(Buf)

	dev  Device
	free map[arenaKey][]Buf
	held int
	peak int
}

type arenaKey struct {
	t Type
	n int
}

// NewArena returns an empty arena over dev.
func NewArena(dev Device) *Arena {
	return &Arena{dev: dev, free: map[arenaKey][]Buf{}}
}

// MemoryError is the value that an Arena panics with when its device has no
// memory left: kernels ask for it in the middle of a pass. Package nn turns it
// into an error.
type MemoryError struct {
	Type Type
	Len  int
	Err  error // what Alloc said
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("no memory for %d x %s: %v", e.Len, e.Type, e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }

// Get returns a buffer of n elements whose content is undefined. It panics with
// a *MemoryError when there is none.
func (a *Arena) Get(t Type, n int) Buf {
	a.held += n * t.Size()
	a.peak = max(a.peak, a.held)
	k := arenaKey{t, n}
	if s := a.free[k]; len(s) > 0 {
		b := s[len(s)-1]
		a.free[k] = s[:len(s)-1]
		return b
	}
	b, err := a.dev.Alloc(t, n)
	if err != nil {
		panic(&MemoryError{t, n, err})
	}
	return b
}

// Put gives b back. b must have come from Get and must not be used again.
func (a *Arena) Put(b Buf) {
	if b.Len == 0 {
		return
	}
	if a.Freed != nil {
		a.Freed(b)
	}
	a.held -= b.Size()
	k := arenaKey{b.Type, b.Len}
	a.free[k] = append(a.free[k], b)
}

// Peak returns the most bytes that were out at one time.
func (a *Arena) Peak() int { return a.peak }
