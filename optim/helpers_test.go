package optim

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func param(t testing.TB, name string, n int, decay bool) *nn.Param {
	t.Helper()
	value, err := naive.New().Alloc(device.F32, n)
	require.NoError(t, err)
	return &nn.Param{Name: name, Shape: []int{n}, Decay: decay, Value: value}
}

// cut returns p in segments that end at the given elements and at its end.
func cut(p *nn.Param, grad device.Buf, ends ...int) []Segment {
	var out []Segment
	lo := 0
	for _, hi := range append(ends, p.Len()) {
		out = append(out, Segment{Param: p, Lo: lo, Hi: hi, Grad: grad.Slice(lo, hi)})
		lo = hi
	}
	return out
}

// devices are the plain loops and what this processor has, on two threads.
func devices(t *testing.T) []device.Device {
	t.Helper()
	fast, err := cpu.New(cpu.Config{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fast.Close()) })
	return []device.Device{naive.New(), fast}
}
