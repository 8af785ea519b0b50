package launch

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts a worker at the head of a process group and has the
// kernel kill it when the thread that started it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tether has the kernel kill the worker's whole process group when the other end
// of the pipe closes, that is when the launcher is gone for whatever reason:
// signal-driven input, aimed at the group, with SIGKILL as the signal. The
// setting belongs to the open file, which the worker keeps alive. Where it fails
// the parent-death signal still kills the worker itself.
func tether(held *os.File, group int) {
	raw, err := held.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if _, err := unix.FcntlInt(fd, unix.F_SETOWN, -group); err != nil {
			return
		}
		if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL)); err != nil {
			return
		}
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil {
			return
		}
		_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
	})
}

// awaitEnd returns when the process has ended and leaves it to be waited for, so
// that its id is not used again; false when it cannot. halted is told when the
// process stops and when it goes on.
func awaitEnd(process int, halted func(stopped bool)) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, process, &info, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false
		case info.Code != cldStopped && info.Code != cldContinued:
			return true
		}
		stopped := info.Code == cldStopped
		kind := unix.WCONTINUED
		if stopped {
			kind = unix.WSTOPPED
		}
		// Takes the notice that was looked at, unless another has replaced it.
		_ = unix.Waitid(unix.P_PID, process, &info, kind|unix.WNOHANG, nil)
		halted(stopped)
	}
}

// What waitid says has happened to a child; package unix lacks the names.
const (
	cldStopped   = 5
	cldContinued = 6
)

func killGroup(group int) { _ = unix.Kill(-group, unix.SIGKILL) }

// openPipe takes over a descriptor that was inherited, made fit for deadlines.
func openPipe(fd int) (*os.File, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}

func isTerminal(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		terminal = err == nil
	})
	return err == nil && terminal
}
