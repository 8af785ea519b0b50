package metrics

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestLine(t *testing.T) {
	l := Line{Step: 7, Epoch: 0.25, Loss: math.NaN(), LearningRate: 1e-7, SamplesPerSec: 1234.5, Times: stepTimes}
	const want = `{"step":7,"epoch":0.25,"loss":null,"lr":1e-07,"samples_per_sec":1234.5,"step_ms":100,"forward_ms":20,` +
		`"backward_ms":35,"optimizer_ms":15,"comm_ms":45,"comm_exposed_ms":15,"bubble_ms":8,"wait_ms":5,"data_ms":10}` + "\n"
	require.Equal(t, want, string(l.append(nil)))
	l.TokensPerSec = 2469
	require.Equal(t, strings.TrimSuffix(want, "}\n")+`,"tokens_per_sec":2469}`+"\n", string(l.append(nil)))
	l.TokensPerSec, l.LossScale = 0, 32768
	require.Equal(t, strings.TrimSuffix(want, "}\n")+`,"loss_scale":32768}`+"\n", string(l.append(nil)))
	for _, v := range []float64{0, -0.1, 1e300, 5e-324, math.MaxFloat64, 123456789, math.Inf(1)} {
		var back *float64
		require.NoError(t, json.Unmarshal(appendNumber(nil, v), &back))
		if math.IsInf(v, 0) {
			require.Nil(t, back)
		} else {
			require.Equal(t, v, *back)
		}
	}
}

func TestWriterFlushesAtIntervals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	synctest.Test(t, func(t *testing.T) {
		w, err := Open(path, 0, time.Second)
		require.NoError(t, err)
		require.NoError(t, w.Write(Line{Step: 0}))
		require.Empty(t, read(t, path))
		<-time.After(time.Second) // of the bubble's clock: at once
		require.NoError(t, w.Write(Line{Step: 1}))
		written := read(t, path)
		require.Contains(t, written, `{"step":0,`)
		require.Contains(t, written, `{"step":1,`)
		require.NoError(t, w.Write(Line{Step: 2}))
		require.Equal(t, written, read(t, path))
		require.NoError(t, w.Close())
		require.Contains(t, read(t, path), `{"step":2,`)
	})
}

func TestWriterResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	w, err := Open(path, 0, 0)
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, w.Write(Line{Step: i, Loss: 1}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, []byte(read(t, path)+`{"step":1,"torn`), 0o600))

	w, err = Open(path, 3, 0)
	require.NoError(t, err)
	require.NoError(t, w.Write(Line{Step: 3, Loss: 2}))
	require.NoError(t, w.Close())
	var want []byte
	for i := range 3 {
		want = (&Line{Step: i, Loss: 1}).append(want)
	}
	want = (&Line{Step: 3, Loss: 2}).append(want)
	require.Equal(t, string(want), read(t, path))
}

func TestWriterErrors(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "no", "metrics.jsonl"), 0, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
	w, err := Open(filepath.Join(t.TempDir(), "metrics.jsonl"), 0, 0)
	require.NoError(t, err)
	require.NoError(t, w.file.Close())
	first := w.Write(Line{})
	require.ErrorIs(t, first, os.ErrClosed)
	require.Equal(t, first, w.Write(Line{}))
	require.Equal(t, first, w.Close())
}

func TestWriteDoesNotAllocate(t *testing.T) {
	w, err := Open(filepath.Join(t.TempDir(), "metrics.jsonl"), 0, time.Hour)
	require.NoError(t, err)
	defer w.Close()
	w.buffer = make([]byte, 0, 1<<20)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = w.Write(Line{Step: 1, Loss: 0.12345, Times: stepTimes}) }))
}
