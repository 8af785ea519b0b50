//go:build ascend

package ascend

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

func TestMain(m *testing.M) { os.Exit(ascendsim.Main(m)) }

// again runs this program's tests with other libraries.
func again(t *testing.T, libraries, tests string, env ...string) {
	t.Helper()
	out, err := ascendsim.Again(t, libraries, tests, env...)
	require.NoError(t, err, "%s", out)
}

// open loads the simulated runtime and opens a device; both are closed, and what
// is left counted, when the test ends.
func open(t *testing.T, index int) *Device {
	l, err := Load(Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
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
