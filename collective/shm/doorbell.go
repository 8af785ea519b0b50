//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Some goroutine of a rank is always responsible for its rings: one that waits
// and looks itself (a poller), or the attendant, which sleeps on the rank's
// eventfd. The rank's armed word says which: peers write to the eventfd only
// when it is set.

// attend is the attendant's loop; it ends when the eventfd is closed.
func (t *Transport) attend() {
	raw, err := t.bell.SyscallConn()
	if err != nil {
		return
	}
	var count [8]byte
	for {
		t.armed(t.rank).Store(1)
		t.poll(true)
		err = raw.Read(func(fd uintptr) bool {
			_, err := unix.Read(int(fd), count[:])
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil || t.stopping.Load() {
			return
		}
		t.wakeDomains()
		t.learnOfAbort()
	}
}

// notify makes rank peer look at its rings.
func (t *Transport) notify(peer int) {
	if armed := t.armed(peer); armed.Load() != 0 && armed.Swap(0) != 0 {
		t.ring(peer)
	}
}

// ring wakes peer's attendant.
func (t *Transport) ring(peer int) {
	one := uint64(1)
	// It fails when the counter is full, and then the attendant is about to wake.
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(t.bells[peer]), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// startPolling makes the caller responsible for the rings until stopPolling.
func (t *Transport) startPolling() {
	t.pollers.Add(1)
	t.armed(t.rank).Store(0)
}

func (t *Transport) stopPolling() {
	if t.pollers.Add(-1) == 0 {
		t.armed(t.rank).Store(1)
		t.poll(true)
	}
}

// poll handles what the rings have. With all false it leaves out what another
// goroutine is at work on.
func (t *Transport) poll(all bool) {
	for _, l := range t.links {
		if l.peer == t.rank {
			continue
		}
		if l.in.ring.filled() {
			l.takeFrames(all)
		}
		if l.out.blocked.Load() {
			l.sendFrames(all)
		}
	}
}

// learnOfAbort fails the transport when a peer has found a rank dead.
func (t *Transport) learnOfAbort() {
	if dead := int(atomicAt(t.control, abortAt).Load()) - 1; dead >= 0 && dead < t.size && dead != t.rank {
		t.fail(dead, errDied)
	}
}
