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

// Get returns a buffer of n elements whose content is undefined.
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
		panic(fmt.Errorf("device: arena: %w", err))
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
