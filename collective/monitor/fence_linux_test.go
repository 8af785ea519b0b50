package monitor

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFence kills what a signal has stopped, and nothing else.
func TestFence(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	h := here{Host: processHost(), PID: cmd.Process.Pid}
	h.Start, _ = processState(h.PID)
	require.False(t, h.fence(), "it runs")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, h.PID, &info, unix.WSTOPPED, nil))
	require.False(t, here{Host: h.Host, PID: h.PID, Start: "1"}.fence(), "another process had this id")
	require.True(t, h.fence())
	require.Error(t, cmd.Wait())
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal())
	require.False(t, h.fence(), "it is gone")
}
