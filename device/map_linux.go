//go:build !race

package device

import "golang.org/x/sys/unix"

// regionSpace is how much address space a region takes where that is free: one
// region then holds a whole training, and memory that comes back can be joined
// with its neighbours. Only the pages that are written take memory.
const regionSpace = 1 << 30

// mapRegion maps at least that many bytes, and as many more as it takes to
// align them to room.
func mapRegion(least int) (m []byte, room int, err error) {
	for _, n := range []int{max(least, regionSpace), least} {
		n = (n+hugePage-1)/hugePage*hugePage + hugePage
		m, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err == nil {
			advise(m)
			return m, hugePage, nil
		}
	}
	return nil, 0, err
}

// unmapRegion can fail only for what was not mapped.
func unmapRegion(m []byte) { _ = unix.Munmap(m) }

// advise asks for huge pages; a kernel without them changes nothing.
func advise(m []byte) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }

// populate has the system back b with pages now, as a write to each would.
func populate(b []byte) error { return unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
