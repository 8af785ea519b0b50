package data

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipeIsNoFile: opening one would wait for ever.
func TestPipeIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, trainImages), 0o600))
	_, err := directory{os.DirFS(dir), dir}.open(trainImages)
	require.ErrorContains(t, err, "is no file but a pipe or device")
}
