package cpu

import "golang.org/x/sys/unix"

// allowAMX asks the kernel for the state of the matrix unit, which a process has
// to do once before its threads use it (Documentation/arch/x86/xstate.rst).
func allowAMX() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18
	)
	_, _, failed := unix.Syscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return failed == 0
}
