//go:build ascend

package ascendsim_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// TestProof runs a C program, which knows nothing of the Go binding, against both
// layouts and chips. It needs gcc.
func TestProof(t *testing.T) {
	dir := t.TempDir()
	for _, layout := range []ascendsim.Layout{ascendsim.CANN8, ascendsim.CANN9} {
		libraries, err := ascendsim.Build(dir, layout, "")
		require.NoError(t, err)
		program := filepath.Join(dir, "proof"+string(layout))
		args := []string{"-o", program, filepath.Join(dir, "sources", "proof.c"), "-L" + libraries, "-lhccl"}
		if layout == ascendsim.CANN9 {
			args = append(args, "-lhcomm")
		}
		args = append(args, "-lascendcl", "-pthread", "-Wl,-rpath,"+libraries)
		out, err := exec.Command("gcc", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, chip := range []string{"910A", "910B"} {
			for _, n := range []int{1, 2, 3, 4, 8} {
				t.Run(fmt.Sprintf("%s/%s/%d", layout, chip, n), func(t *testing.T) {
					cmd := exec.Command(program, fmt.Sprint(n))
					cmd.Env = append(os.Environ(), "ASCENDSIM_CHIP="+chip, "HCCL_HOST_SOCKET_PORT_RANGE=auto", "ASCENDSIM_CONNECT_TIMEOUT_MS=300000", "ASCENDSIM_EXEC_TIMEOUT_MS=300000")
					out, err := cmd.CombinedOutput()
					require.NoError(t, err, "%s", out)
				})
			}
		}
	}
}
