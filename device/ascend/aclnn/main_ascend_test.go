//go:build ascend

package aclnn

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// The simulated libraries of one layout are loaded into one process; tests of
// another layout or chip run this program again.
const librariesVariable = "ASCEND_TEST_LIBRARIES"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(librariesVariable) == "" {
		dir, err := os.MkdirTemp("", "aclnn")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		libraries, err := ascendsim.Build(dir, ascendsim.CANN8, "")
		if err != nil {
			fmt.Fprintln(os.Stderr, err, "\nThese tests need gcc: on Debian or Ubuntu, apt-get install gcc libc6-dev")
			return 1
		}
		os.Setenv(librariesVariable, libraries)
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// again runs this program's tests with other libraries or variables.
func again(t *testing.T, libraries, tests string, env ...string) {
	cmd := exec.Command(os.Args[0], "-test.run", tests, "-test.count=1", fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(append(os.Environ(), librariesVariable+"="+libraries), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// accelerator loads the simulated runtime and opens a device. When the test ends
// it is closed and what is left counted.
func accelerator(t *testing.T) *ascend.Device {
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(librariesVariable)})
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
