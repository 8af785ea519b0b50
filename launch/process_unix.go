//go:build unix && !linux

package launch

import (
	"os"
	"syscall"
)

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tether: WatchParent must do.
func tether(*os.File, int) {}

// awaitEnd: Wait does, and gives the id free.
func awaitEnd(int, func(stopped bool)) bool { return false }

func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func openPipe(fd int) (*os.File, error) {
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}

func isTerminal(f *os.File) bool {
	about, err := f.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}
