package monitor

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// processHost is equal for processes that know each other by process id.
func processHost() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// processState returns when a process began and its state letter; both are zero
// when there is no such process.
func processState(pid int) (start string, state byte) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name in parentheses may hold anything; state is field 3, start 22.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const first, startField = 3, 22
	if len(fields) <= startField-first || len(fields[0]) != 1 {
		return "", 0
	}
	return fields[startField-first], fields[0][0]
}

// openProcess returns a file that becomes readable when the process ends.
func openProcess(h here) (*os.File, error) {
	fd, err := unix.PidfdOpen(h.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("process %d", h.PID))
	if h.ended() { // the descriptor may be of a later process
		_ = file.Close()
		return nil, unix.ESRCH
	}
	return file, nil
}

// awaitProcess returns true when the process has ended, false when its file was
// closed. It takes no thread.
func awaitProcess(file *os.File) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		ended = err == nil && n == 1
		return ended
	})
	return err == nil && ended
}

// fence kills the process if it is stopped by a signal, and reports whether it
// has. The descriptor makes sure that it is the process that was looked at.
func (h here) fence() bool {
	fd, err := unix.PidfdOpen(h.PID, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if start, state := processState(h.PID); start != h.Start || state != 'T' {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}
