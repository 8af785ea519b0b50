package monitor

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestStoppedNear finds the neighbours that a signal has stopped, whatever rank 0
// says.
func TestStoppedNear(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	defer func() {
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}()
	h := here{Host: processHost(), PID: cmd.Process.Pid}
	h.Start, _ = processState(h.PID)
	elsewhere := h
	elsewhere.Host = "another"
	m := &Monitor{Config: Config{Rank: 2, Size: 4}, own: ownProcess(), ranks: []here{elsewhere, h, ownProcess(), {}}, met: make(chan struct{})}
	require.Empty(t, m.stoppedNear(), "nobody is known yet")
	close(m.met)
	require.Empty(t, m.stoppedNear(), "it runs")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, h.PID, &info, unix.WSTOPPED, nil))
	require.Equal(t, map[int]string{1: stopped}, m.stoppedNear())
}
