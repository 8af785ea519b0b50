package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What comes tensor by tensor, in any order, is to the byte what Write makes, and
// Reader finds each tensor in it, also when the file is gone.
func TestWriterAndReader(t *testing.T) {
	dir, state := t.TempDir(), sample()
	want, err := Write(filepath.Join(dir, "whole"), 7, state)
	require.NoError(t, err)
	layout := State{Metadata: state.Metadata, Tensors: slices.Clone(state.Tensors)}
	for i := range layout.Tensors {
		layout.Tensors[i].Data = nil
	}
	w, err := Create(filepath.Join(dir, "pieces"), 7, layout)
	require.NoError(t, err)
	for _, x := range slices.Backward(state.Tensors) {
		require.NoError(t, w.Put(x.Name, x.Data))
	}
	got, err := w.Commit()
	require.NoError(t, err)
	require.NoError(t, Verify(got))
	a, err := os.ReadFile(want)
	require.NoError(t, err)
	b, err := os.ReadFile(got)
	require.NoError(t, err)
	require.Equal(t, a, b)

	r, err := Open(got)
	require.NoError(t, err)
	require.NoError(t, os.Remove(got))
	require.Equal(t, state.Metadata, r.Metadata)
	require.Len(t, r.Checksum, checksumDigits)
	require.Len(t, r.Tensors, len(state.Tensors))
	for _, x := range state.Tensors {
		n, ok := r.Size(x.Name)
		require.True(t, ok)
		data := make([]byte, n)
		require.NoError(t, r.Read(x.Name, data))
		require.Equal(t, string(x.Data), string(data), x.Name)
		require.ErrorContains(t, r.Read(x.Name, make([]byte, n+1)), x.Name)
	}
	_, ok := r.Size("nothing")
	require.False(t, ok)
	require.NoError(t, r.Close())
}

func TestWriterRefusesWhatWasNotAnnounced(t *testing.T) {
	dir, state := t.TempDir(), sample()
	x := state.Tensors[0]
	w, err := Create(dir, 1, state)
	require.NoError(t, err)
	require.NoError(t, w.Put(x.Name, x.Data))
	require.ErrorContains(t, w.Put(x.Name, x.Data), "comes twice")
	require.ErrorContains(t, w.Put("other", nil), "not announced")
	require.ErrorContains(t, w.Put(state.Tensors[1].Name, make([]byte, 1e4)), "were announced")
	_, err = w.Commit()
	require.ErrorContains(t, err, "did not come")
	require.Empty(t, files(t, dir))
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	require.ErrorContains(t, err, "not a file")
	_, err = Open(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(path, []byte("1234"), 0o600))
	_, err = Open(path)
	require.ErrorIs(t, err, ErrDamaged)
}
