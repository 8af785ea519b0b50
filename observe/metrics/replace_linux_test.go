package metrics

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitedVariable tells a process of this test that the limit is for it.
const limitedVariable = "METRICS_TEST_LIMITED"

// TestReplaceWithoutSpace: a file that does not fit leaves the old one as it was,
// or none. A limit on the size of files stands for a full disk; it is another process
// that has it, as Go's test log is a file too.
func TestReplaceWithoutSpace(t *testing.T) {
	if os.Getenv(limitedVariable) == "" {
		limited := exec.Command(os.Args[0], "-test.run", "^TestReplaceWithoutSpace$")
		limited.Env = append(os.Environ(), limitedVariable+"=1")
		out, err := limited.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var usual syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &usual))
	limit := usual
	limit.Cur = 1000
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	require.NoError(t, Replace(old, []byte("whole")))

	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	failedOld := Replace(old, make([]byte, 1001))
	failedNew := Replace(filepath.Join(dir, "new"), make([]byte, 1001))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &usual))

	require.ErrorIs(t, failedOld, syscall.EFBIG)
	require.ErrorIs(t, failedNew, syscall.EFBIG)
	require.Equal(t, "whole", read(t, old))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no other file")
}
