package launch

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLauncherKilled: the kernel kills workers and their children, deaf or not.
func TestLauncherKilled(t *testing.T) {
	for _, role := range []string{"ready hang", "deaf child ready hang", "child ready watch"} {
		t.Run(role, func(t *testing.T) {
			h := newHolders(t)
			launcher := exec.Command(os.Args[0])
			launcher.Env = append(os.Environ(), roleVariable+"=launcher", "LAUNCH_TEST_WORKERS="+role, "LAUNCH_TEST_PIPE="+h.path)
			require.NoError(t, launcher.Start())
			n := 3
			if strings.Contains(role, "child") {
				n = 6
			}
			h.ready(n)
			require.NoError(t, launcher.Process.Kill())
			require.Error(t, launcher.Wait())
			h.ended()
			reapOrphans(t)
		})
	}
}

// TestLauncherInterrupted: a real signal to a real launcher.
func TestLauncherInterrupted(t *testing.T) {
	h := newHolders(t)
	launcher := exec.Command(os.Args[0])
	launcher.Env = append(os.Environ(), roleVariable+"=launcher", "LAUNCH_TEST_WORKERS=gentle", "LAUNCH_TEST_PIPE="+h.path)
	var out bytes.Buffer
	launcher.Stdout = &out
	require.NoError(t, launcher.Start())
	h.ready(3)
	require.NoError(t, launcher.Process.Signal(os.Interrupt))
	err := launcher.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitInterrupted, exit.ExitCode())
	require.Equal(t, "checkpoint after interrupt\n", out.String(), "rank 0's, once")
	h.ended()
}
