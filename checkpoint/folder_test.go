package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/stretchr/testify/require"
)

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func writeSteps(t *testing.T, dir string, steps ...int) {
	t.Helper()
	for _, step := range steps {
		_, err := Write(dir, step, sample())
		require.NoError(t, err)
	}
}

func TestListSortsBySteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on", "demand")
	none, err := List(dir)
	require.NoError(t, err)
	require.Empty(t, none)
	writeSteps(t, dir, 120, 5, 123456789, 40)
	for _, other := range []string{"step-5.safetensors", "step-00000006.safetensors.bak", "step-0000000x.safetensors",
		"step-000000007.safetensors", "step--0000001.safetensors", "model.safetensors"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
	}
	entries, err := List(dir)
	require.NoError(t, err)
	var steps []int
	for _, e := range entries {
		steps = append(steps, e.Step)
	}
	require.Equal(t, []int{5, 40, 120, 123456789}, steps)
}

func TestLatestSkipsDamagedOnes(t *testing.T) {
	dir := t.TempDir()
	e, skipped, err := Latest(dir)
	require.NoError(t, err)
	require.Empty(t, skipped)
	require.Equal(t, Entry{}, e)

	writeSteps(t, dir, 1, 2, 3, 4)
	require.NoError(t, os.Truncate(filepath.Join(dir, fileName(4)), 100))
	b, err := os.ReadFile(filepath.Join(dir, fileName(3)))
	require.NoError(t, err)
	b[len(b)-1] ^= 4
	require.NoError(t, os.WriteFile(filepath.Join(dir, fileName(3)), b, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, fileName(5)), 0o700))

	e, skipped, err = Latest(dir)
	require.NoError(t, err)
	require.Equal(t, Entry{filepath.Join(dir, fileName(2)), 2}, e)
	require.Len(t, skipped, 3)
	require.ErrorContains(t, skipped[0].Err, "not a file")
	require.ErrorContains(t, skipped[1].Err, "in a file of 100")
	require.ErrorContains(t, skipped[2].Err, "its SHA-256 is ")
	require.Equal(t, 3, skipped[2].Step)
}

func TestPruneKeepsNewestAndProtected(t *testing.T) {
	dir := t.TempDir()
	writeSteps(t, dir, 1, 2, 3, 4, 5)
	removed, err := Prune(dir, 2, filepath.Join(dir, fileName(2)))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, fileName(1)), filepath.Join(dir, fileName(3))}, removed)
	require.Equal(t, []string{fileName(2), fileName(4), fileName(5)}, files(t, dir))
	removed, err = Prune(dir, 9)
	require.NoError(t, err)
	require.Empty(t, removed)
	_, err = Prune(dir, 0)
	require.ErrorContains(t, err, "at least one must stay")
}

func TestWriteReplacesTheSameStep(t *testing.T) {
	dir := t.TempDir()
	writeSteps(t, dir, 1)
	path, err := Write(dir, 1, State{Metadata: map[string]string{"second": "yes"}})
	require.NoError(t, err)
	got, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"second": "yes"}, got.Metadata)
	require.Equal(t, []string{fileName(1)}, files(t, dir))
}

func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, temporaryStart+"123"+temporaryEnd)
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	e, skipped, err := Latest(dir)
	require.NoError(t, err)
	require.Empty(t, e.Path)
	require.Empty(t, skipped)
	writeSteps(t, dir, 1)
	require.Equal(t, []string{fileName(1)}, files(t, dir))
}

func TestFullDiskLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	writeSteps(t, dir, 1)
	state := sample()
	state.Tensors = append(state.Tensors, Tensor{Name: "large", Type: device.U8, Shape: []int{3 << 20}, Data: make([]byte, 3<<20)})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	w, err := Create(dir, 2, state)
	require.NoError(t, err)
	real := w.file
	w.file = full
	require.ErrorIs(t, w.Put("large", state.Find("large").Data), syscall.ENOSPC)
	w.file = real
	require.NoError(t, w.Abort())
	require.Equal(t, []string{fileName(1)}, files(t, dir))
}

func TestDirectoryErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, place := range []string{file, filepath.Join(file, "below")} {
		_, err := Write(place, 1, sample())
		require.ErrorIs(t, err, syscall.ENOTDIR)
		require.ErrorContains(t, err, "checkpoint of step 1: ")
		require.ErrorContains(t, err, file)
	}
	_, err := List(file)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	_, _, err = Latest(file)
	require.ErrorIs(t, err, syscall.ENOTDIR)

	// A directory where the file should be.
	require.NoError(t, os.Mkdir(filepath.Join(dir, fileName(3)), 0o700))
	_, err = Write(dir, 3, sample())
	require.Error(t, err)
	require.Equal(t, []string{"file", fileName(3)}, files(t, dir))

	require.NoError(t, os.Chmod(dir, 0o500))
	_, err = Write(dir, 4, sample())
	require.NoError(t, os.Chmod(dir, 0o700))
	if os.Geteuid() != 0 { // root may write anywhere
		require.ErrorIs(t, err, os.ErrPermission)
	}
	_, err = Read(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Read(dir)
	require.ErrorContains(t, err, "not a file")
}

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	weights := []float32{1, 2, 3, 4}
	state := State{
		Metadata: map[string]string{"epoch": "3"},
		Tensors:  []Tensor{{Name: "fc.weight", Type: device.F32, Shape: []int{2, 2}, Data: device.FromF32(weights).Bytes()}},
	}
	if _, err := Write(dir, 120, state); err != nil {
		panic(err)
	}
	newest, _, err := Latest(dir)
	if err != nil {
		panic(err)
	}
	back, err := Read(newest.Path)
	if err != nil {
		panic(err)
	}
	t := back.Find("fc.weight")
	fmt.Println(newest.Step, back.Metadata["epoch"], t.Shape, device.FromBytes(t.Type, t.Data).F32())
	// Output: 120 3 [2 2] [1 2 3 4]
}

func BenchmarkWriteRead(b *testing.B) {
	const n = 64 << 20
	state := State{Tensors: []Tensor{{Name: "x", Type: device.F32, Shape: []int{n / 4}, Data: make([]byte, n)}}}
	dir := b.TempDir()
	b.SetBytes(n)
	for b.Loop() {
		path, err := Write(dir, 1, state)
		require.NoError(b, err)
		_, err = Read(path)
		require.NoError(b, err)
	}
}

// TestForget: later steps go, so that Latest and Prune see this run's own.
func TestForget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	require.NoError(t, Prepare(dir))
	for _, step := range []int{3, 10, 20} {
		_, err := Write(dir, step, State{})
		require.NoError(t, err)
	}
	require.NoError(t, Forget(dir, 10))
	entries, err := List(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, 10, entries[1].Step)
}

func TestPrepareRefusesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, Prepare(file), file)
}
