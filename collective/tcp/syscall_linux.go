//go:build !race

package tcp

import (
	"syscall"
	"unsafe"
)

// readNow and writeNow are read and write of sockets that never block, without what
// the runtime does around calls that may: it takes the processor away from a thread
// that is in one for 20 us, which large ones take to copy, and wakes another thread
// for it, which on a host that computes drives the computing one away.
func readNow(fd int, b []byte) (int, error) { return ioNow(syscall.SYS_READ, fd, b) }

func writeNow(fd int, b []byte) (int, error) { return ioNow(syscall.SYS_WRITE, fd, b) }

func ioNow(call uintptr, fd int, b []byte) (int, error) {
	n, _, failure := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if failure != 0 {
		return 0, failure
	}
	return int(n), nil
}
