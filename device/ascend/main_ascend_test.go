//go:build ascend

package ascend

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// The simulated libraries of one layout are loaded into one process; tests of
// another layout run this program again.
const librariesVariable = "ASCEND_TEST_LIBRARIES"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(librariesVariable) == "" {
		dir, err := os.MkdirTemp("", "ascend")
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

// again runs this program's tests with other libraries.
func again(t *testing.T, libraries, tests string, env ...string) {
	cmd := exec.Command(os.Args[0], "-test.run", tests, "-test.count=1")
	cmd.Env = append(append(os.Environ(), librariesVariable+"="+libraries), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// open loads the simulated runtime and opens a device; both are closed, and what
// is left counted, when the test ends.
func open(t *testing.T, index int) *Device {
	l, err := Load(Config{Dir: os.Getenv(librariesVariable)})
	require.NoError(t, err)
	d, err := l.Open(index)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		for _, what := range []string{"streams", "events", "device memory", "pinned memory", "contexts"} {
			require.Zero(t, alive(l, what), what)
		}
		require.NoError(t, l.Close())
	})
	return d
}

// alive is the simulator's count of what was made and not released.
func alive(l *Library, what string) int32 {
	h := &Handle{handles: []uintptr{l.handle}}
	name := append([]byte(what), 0)
	return Call(h.Symbol("ascendsim_alive"), address(name))
}
