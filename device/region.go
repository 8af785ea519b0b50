package device

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// HostRegions is the Region, Release and part of the Close of devices that
// compute on the host: memory outside of the Go heap, on huge pages where the
// system has them, of which only what is asked for or touched counts. Where
// memory cannot be mapped, and under the race detector, which does not see mapped
// memory, it is memory of the Go heap. The zero value is ready; it is safe for
// concurrent use.
type HostRegions struct {
	// Busy says that no processor is left beside those that compute, for which pages
	// in the background would only be a delay; set before use.
	Busy bool

	mu     sync.Mutex
	mapped map[*byte]*mapping // by first byte
	filler filler
}

// mapping is one region. What its owner is sure to use is filled with pages in
// the background.
type mapping struct {
	all     []byte
	filling *filling
}

// worthFilling is the size from which regions and large allocations are filled in
// the background.
const worthFilling = 8 << 20

// Region returns at least that many bytes, which the caller is about to use, as
// U8, aligned to Align at least; their content is undefined. They are to be given
// back to Release, or else are unmapped by Close: nothing may read them
// afterwards.
func (r *HostRegions) Region(least int) (Buf, error) {
	if least < 0 || least > math.MaxInt-2*hugePage {
		return Buf{}, fmt.Errorf("cannot map %d bytes", least)
	}
	m, room, err := mapRegion(least)
	if err != nil {
		return Buf{}, fmt.Errorf("mapping %d bytes: %w", least, err)
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(m)))) & (room - 1)
	b := FromBytes(U8, m[skip:len(m):len(m)])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mapped == nil {
		r.mapped = map[*byte]*mapping{}
	}
	region := &mapping{all: m}
	r.mapped[unsafe.SliceData(b.mem)] = region
	if least >= worthFilling && !r.Busy {
		region.filling = r.filler.add(b.mem[:least], true) // activations are the first to be written
	}
	return b, nil
}

// Release gives a region back to the system. A region that is not of this
// HostRegions, or was given back, is a programmer's error and panics.
func (r *HostRegions) Release(b Buf) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.mapped[unsafe.SliceData(b.mem)]
	if !ok {
		panic("device: a region was released that is not out")
	}
	delete(r.mapped, unsafe.SliceData(b.mem))
	r.unmap(m)
}

func (r *HostRegions) unmap(m *mapping) {
	r.filler.drop(m.filling)
	unmapRegion(m.all)
}

// Alloc is HostAlloc for what is about to be written: the pages of large memory are
// there before, as far as the background comes. The memory is not of a region.
func (r *HostRegions) Alloc(t Type, n int) (Buf, error) {
	b, err := HostAlloc(t, n)
	if err == nil && b.Size() >= worthFilling && !r.Busy {
		r.filler.add(inside(b.mem), false)
	}
	return b, err
}

// Close gives back all regions that are out, and waits for what the background
// does. Memory asked for later is not filled there; another Close gives it back.
func (r *HostRegions) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filler.close()
	for _, m := range r.mapped {
		unmapRegion(m.all)
	}
	clear(r.mapped)
}

// Mapped returns how many bytes of address space the regions take that are out.
func (r *HostRegions) Mapped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, m := range r.mapped {
		n += len(m.all)
	}
	return n
}

// hugePage is the size that regions and large allocations are laid out for.
const hugePage = 2 << 20
