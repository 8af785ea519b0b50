package ascendsim

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// LibrariesVariable names the directory of the simulated libraries that tests load.
// Those of one layout are loaded into one process: tests of another layout, chip or
// fault run Again.
const LibrariesVariable = "ASCEND_TEST_LIBRARIES"

// Main is TestMain but for the exit: it builds the libraries of CANN 8, unless
// LibrariesVariable names some, runs the tests, and complains of goroutines that
// they left.
func Main(m *testing.M) (code int) {
	if os.Getenv(LibrariesVariable) == "" {
		dir, err := os.MkdirTemp("", "ascend")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		libraries, err := Build(dir, CANN8, "")
		if err != nil {
			fmt.Fprintln(os.Stderr, err, "\nThese tests need gcc: on Debian or Ubuntu, apt-get install gcc libc6-dev")
			return 1
		}
		os.Setenv(LibrariesVariable, libraries)
	}
	code = m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Again runs tests of this program in another process, with other libraries ("":
// the same) or variables, and returns what they wrote.
func Again(t *testing.T, libraries, tests string, env ...string) (output string, err error) {
	t.Helper()
	if libraries == "" {
		libraries = os.Getenv(LibrariesVariable)
	}
	args := []string{"-test.run", tests, "-test.count=1", fmt.Sprintf("-test.short=%v", testing.Short())}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), LibrariesVariable+"="+libraries), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
