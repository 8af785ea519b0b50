//go:build ascend

package aclnn

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

func TestMain(m *testing.M) { os.Exit(ascendsim.Main(m)) }

// again runs this program's tests with other libraries or variables.
func again(t *testing.T, libraries, tests string, env ...string) {
	t.Helper()
	out, err := ascendsim.Again(t, libraries, tests, env...)
	require.NoError(t, err, "%s", out)
}

// accelerator loads the simulated runtime and opens a device. When the test ends
// it is closed and what is left counted.
func accelerator(t *testing.T) *ascend.Device {
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err)
	d, err := l.Open(0)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		for _, what := range []string{"tensors", "scalars", "arrays", "executors", "streams", "device memory", "pinned memory", "contexts"} {
			require.Zero(t, alive(l, what), what)
		}
		require.NoError(t, l.Close())
	})
	return d
}

// open makes a Device over one; the caller or the test's end closes it.
func open(t *testing.T) *Device {
	host, err := cpu.New(cpu.Config{Kernels: "portable"})
	require.NoError(t, err)
	d, err := New(Config{Device: accelerator(t), Host: host})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// alive is the simulator's count of what was made and not released.
func alive(l *ascend.Library, what string) int32 {
	h, err := l.LoadOther("libascendcl.so")
	if err != nil {
		panic(err)
	}
	name := append([]byte(what), 0)
	return ascend.Call(h.Symbol("ascendsim_alive"), uintptr(unsafe.Pointer(&name[0])))
}
