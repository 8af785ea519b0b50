//go:build linux && (amd64 || arm64)

package shm

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0
	futexWake = 1
)

// sleepWhile blocks while word holds value, for at most limit; it may return
// early. The call goes through the scheduler, so it keeps no processor.
func sleepWhile(word *atomic.Uint32, value uint32, limit time.Duration) {
	timeout := unix.NsecToTimespec(limit.Nanoseconds())
	// Every outcome makes the caller look again.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// wakeSleeper wakes who sleeps on word, in any process.
func wakeSleeper(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

// yieldThread lets another thread of this processor run.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// relax lets other threads run, and now and then, where i counts, other
// goroutines: that may wake another thread of this process, which costs more.
func relax(i int) {
	if i&15 == 15 {
		runtime.Gosched()
	}
	yieldThread()
}
