//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel may have two ranks share a processor while another is idle, for as
// long as they let each other run so politely that neither looks like a burden.
// Each rank shows where it runs, and the higher of two steps aside: it leaves
// its processor once, free to be moved again at once. Nothing is pinned.

// spreadEvery is how often a rank steps aside at most.
const spreadEvery = 5 * time.Millisecond

// showEvery is after how many calls a rank that never waits shows where it is.
const showEvery = 64

// showPlace publishes where this thread runs.
func (d *domain) showPlace() (processor uint32) {
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&processor)), 0, 0)
	d.places[d.rank].Store(processor + 1)
	return processor
}

// spread leaves this processor when peer, which has just run in this rank's
// stead, seems to be on it.
func (d *domain) spread(peer int) {
	if d.transport.spin.crowded {
		return
	}
	here := d.showPlace()
	now := time.Now()
	if peer > d.rank || d.places[peer].Load() != here+1 || now.Sub(d.moved) < spreadEvery {
		return
	}
	d.moved = now
	var allowed, elsewhere unix.CPUSet
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return
	}
	elsewhere = allowed
	for _, place := range d.places {
		if p := int(place.Load()); p > 0 {
			elsewhere.Clear(p - 1)
		}
	}
	if elsewhere.Count() == 0 {
		return
	}
	// Where it fails the ranks go on sharing.
	if unix.SchedSetaffinity(0, &elsewhere) == nil {
		_ = unix.SchedSetaffinity(0, &allowed)
	}
	d.showPlace()
}
