package device

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Arena hands out buffers of a device and takes them back. It cuts them from
// regions (see Device.Region), takes the smallest gap that fits and joins what
// comes back with the free memory beside it, so that buffers of all sizes share
// one run of memory: what it takes is little more than Peak. A training step
// asks for the same buffers again and again, so after the first step it asks the
// device for nothing. An Arena is used by one goroutine; its memory is gone when
// the device closes.
type Arena struct {
	// Freed, when set, sees each buffer that comes back: tests fill it with
	// NaN to prove that nobody reads it any more.
	Freed func(Buf)

	dev     Device
	regions []Buf
	gaps    []gap         // free memory, by region and place
	small   map[int][]Buf // free buffers of at most smallBuffer bytes, by size
	slabs   []Buf         // what small buffers are cut from, each larger than the ones before
	slab    Buf           // what is left of the last of them
	held    int
	peak    int
	reached []int // by region: the end of what was ever handed out
}

// gap is free memory of a region.
type gap struct{ region, at, size int }

const (
	// smallBuffer is the size up to which buffers come from regions of their
	// own and keep their size for good: statistics of channels, scores, labels.
	// Between activations they would leave gaps that nothing fits.
	smallBuffer = 32 << 10
	firstSlab   = 128 << 10
	// mostAhead bounds what is asked for beyond need when a region is full.
	mostAhead = 64 << 20
)

// NewArena returns an empty arena over dev.
func NewArena(dev Device) *Arena {
	return &Arena{dev: dev, small: map[int][]Buf{}}
}

// MemoryError is the value that an Arena panics with when its device has no
// memory left: kernels ask for it in the middle of a pass. Package nn turns it
// into an error.
type MemoryError struct {
	Type Type
	Len  int
	Err  error // what Region said
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("no memory for %d x %s: %v", e.Len, e.Type, e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }

// Get returns a buffer of n elements whose content is undefined, aligned to
// Align. It panics with a *MemoryError when there is none.
func (a *Arena) Get(t Type, n int) Buf {
	if n < 0 || n > (math.MaxInt-mostAhead)/t.Size() {
		panic(&MemoryError{t, n, fmt.Errorf("cannot allocate %d x %s", n, t)})
	}
	if n == 0 {
		return Buf{Type: t}
	}
	b, err := a.take(spaceOf(n * t.Size()))
	if err != nil {
		panic(&MemoryError{t, n, err})
	}
	a.held += n * t.Size()
	a.peak = max(a.peak, a.held)
	return b.Slice(0, n*t.Size()).As(t)
}

// Expect tells a new arena how many bytes are going to be out at one time, at
// least, so that the device can prepare them meanwhile.
func (a *Arena) Expect(bytes int) {
	if bytes > 0 && len(a.regions) == 0 {
		_ = a.grow(bytes) // Get finds out what is missing
	}
}

// Put gives b back, which must have come from Get, whole, and must not be used
// again. Giving it back twice panics, as far as that is seen.
func (a *Arena) Put(b Buf) {
	if b.Len == 0 {
		return
	}
	if a.Freed != nil {
		a.Freed(b)
	}
	a.held -= b.Size()
	size := spaceOf(b.Size())
	if size <= smallBuffer {
		a.small[size] = append(a.small[size], whole(b, size))
		return
	}
	a.join(a.find(b, size))
}

// Peak returns the most bytes that were out at one time.
func (a *Arena) Peak() int { return a.peak }

// Footprint returns the bytes of the device's memory that were in use so far:
// Peak and what gaps between buffers added.
func (a *Arena) Footprint() int {
	n := 0
	for _, end := range a.reached {
		n += end
	}
	for _, s := range a.slabs {
		n += s.Len
	}
	return n - a.slab.Len
}

// Close gives the arena's memory back to the device before that closes. Buffers
// that are still out must not be used again; the arena may be.
func (a *Arena) Close() {
	for _, r := range append(a.regions, a.slabs...) {
		a.dev.Release(r)
	}
	*a = Arena{Freed: a.Freed, dev: a.dev, small: map[int][]Buf{}, peak: a.peak}
}

// spaceOf is what a buffer of that many bytes takes.
func spaceOf(bytes int) int { return (bytes + Align - 1) / Align * Align }

func (a *Arena) take(size int) (Buf, error) {
	if size > smallBuffer {
		return a.cut(size)
	}
	if s := a.small[size]; len(s) > 0 {
		a.small[size] = s[:len(s)-1]
		return s[len(s)-1], nil
	}
	if a.slab.Len < size {
		slab, err := a.dev.Region(firstSlab << len(a.slabs))
		if err != nil {
			return Buf{}, err
		}
		a.slabs, a.slab = append(a.slabs, slab), slab // the rest of the old one is less than a small buffer
	}
	b := a.slab.Slice(0, size)
	a.slab = a.slab.Slice(size, a.slab.Len)
	return b, nil
}

// cut takes the start of the smallest gap that is large enough.
func (a *Arena) cut(size int) (Buf, error) {
	best := -1
	for i, g := range a.gaps {
		if g.size >= size && (best < 0 || g.size < a.gaps[best].size) {
			best = i
		}
	}
	if best < 0 {
		if err := a.grow(max(size, min(a.Footprint(), mostAhead))); err != nil {
			return Buf{}, err
		}
		best = len(a.gaps) - 1
	}
	g := &a.gaps[best]
	b := a.regions[g.region].Slice(g.at, g.at+size)
	g.at, g.size = g.at+size, g.size-size
	a.reached[g.region] = max(a.reached[g.region], g.at)
	if g.size == 0 {
		a.gaps = slices.Delete(a.gaps, best, best+1)
	}
	return b, nil
}

func (a *Arena) grow(size int) error {
	r, err := a.dev.Region(size)
	if err != nil {
		return err
	}
	a.gaps = append(a.gaps, gap{region: len(a.regions), size: r.Len / Align * Align})
	a.regions, a.reached = append(a.regions, r), append(a.reached, 0)
	return nil
}

// find returns the place of a buffer.
func (a *Arena) find(b Buf, size int) gap {
	p := b.address()
	for i, r := range a.regions {
		if first := r.address(); p >= first && p < first+uintptr(r.Len) {
			return gap{i, int(p - first), size}
		}
	}
	panic("device: a buffer was given to an arena that did not make it")
}

// join adds g to the gaps.
func (a *Arena) join(g gap) {
	i, _ := slices.BinarySearchFunc(a.gaps, g, func(x, y gap) int {
		if x.region != y.region {
			return x.region - y.region
		}
		return x.at - y.at
	})
	before := i > 0 && a.gaps[i-1].region == g.region
	after := i < len(a.gaps) && a.gaps[i].region == g.region
	if before && a.gaps[i-1].at+a.gaps[i-1].size > g.at || after && g.at+g.size > a.gaps[i].at {
		panic("device: a buffer was given back twice")
	}
	before = before && a.gaps[i-1].at+a.gaps[i-1].size == g.at
	after = after && g.at+g.size == a.gaps[i].at
	switch {
	case before && after:
		a.gaps[i-1].size += g.size + a.gaps[i].size
		a.gaps = slices.Delete(a.gaps, i, i+1)
	case before:
		a.gaps[i-1].size += g.size
	case after:
		a.gaps[i].at, a.gaps[i].size = g.at, g.size+a.gaps[i].size
	default:
		a.gaps = slices.Insert(a.gaps, i, g)
	}
}

// whole is the memory that b was cut from, as U8.
func whole(b Buf, size int) Buf {
	b = b.As(U8)
	b.Len = size
	if b.mem != nil {
		b.mem = unsafe.Slice(unsafe.SliceData(b.mem), size)
	}
	return b
}
