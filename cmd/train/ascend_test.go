//go:build ascend

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// ascendProgram is the program with the binding, and the environment in which it
// finds the simulated libraries.
func ascendProgram(t *testing.T) (binary string, environ []string) {
	dir := t.TempDir()
	libraries, err := ascendsim.Build(dir, ascendsim.CANN9, "")
	require.NoError(t, err)
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o755))
	require.NoError(t, os.Symlink(libraries, filepath.Join(home, "lib64")))
	binary = filepath.Join(dir, "train")
	build := exec.Command("go", "build", "-tags", "ascend", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary, []string{"ASCEND_HOME_PATH=" + home, "HCCL_HOST_SOCKET_PORT_RANGE=auto", "ASCENDSIM_CONNECT_TIMEOUT_MS=60000"}
}

// figures are those of a summary that two backends share.
type figures struct {
	Gradients string   `json:"grad_sha256_first"`
	State     string   `json:"state_sha256"`
	Accuracy  *float64 `json:"eval_accuracy"`
}

// TestAscendEqualsCPU: two ranks have one order of addition, and under
// train.deterministic: world any number has, so that not a bit differs.
func TestAscendEqualsCPU(t *testing.T) {
	binary, environ := ascendProgram(t)
	for _, args := range [][]string{
		{"-nproc", "2"},
		{"-nproc", "2", "-set", "collective.transport=inproc"},
		{"-nproc", "3", "-set", "train.deterministic=world", "-set", "data.batch=24"},
		{"-nproc", "2", "-set", "parallel.pipeline=2", "-set", "train.accumulate=4"},
		{"-nproc", "2", "-set", "parallel.shard_optimizer=true"},
	} {
		var results []figures
		for _, backend := range []string{"cpu", "ascend"} {
			summary := filepath.Join(t.TempDir(), "summary.json")
			cmd := start(t, environ, append([]string{"-config", "resnet.yaml", "-set", "collective.backend=" + backend, "-summary", summary,
				"-set", "train.steps=3", "-set", "train.epochs=0", "-set", "data.batch=16", "-set", "data.name=synthetic",
				"-set", "data.train_samples=96", "-set", "data.test_samples=32", "-set", "observe.run_dir=", "-set", "compute.kernels=portable"}, args...))
			cmd.Path = binary
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%v: %s", args, out)
			require.Equal(t, backend == "ascend", len(out) > 0 && contains(out, "ranks on devices: Ascend910B3, CANN "), "%s", out)
			text, err := os.ReadFile(summary)
			require.NoError(t, err)
			var f figures
			require.NoError(t, json.Unmarshal(text, &f))
			results = append(results, f)
		}
		require.Equal(t, results[0], results[1], "%v", args)
		require.NotEmpty(t, results[0].Gradients)
	}
}

func TestAscendRefusals(t *testing.T) {
	binary, environ := ascendProgram(t)
	for _, tt := range []struct {
		environ []string
		code    int
		want    string
	}{
		{[]string{"ASCEND_HOME_PATH="}, exitUsage, "the Ascend runtime cannot be loaded"},
		{[]string{"ASCENDSIM_BUSY=1"}, exitFailed, "device 1 cannot be taken"},
		{[]string{"ASCENDSIM_DEVICES=1"}, exitFailed, "device 1 is missing"},
		{[]string{"HCCL_CONNECT_TIMEOUT=5"}, exitNetwork, "EI0001"},
	} {
		cmd := start(t, append(environ, tt.environ...), []string{"bench", "-nproc", "2", "-set", "collective.backend=ascend", "-sizes", "4KiB"})
		cmd.Path = binary
		out, err := cmd.CombinedOutput()
		require.Equal(t, tt.code, code(err), "%s", out)
		require.True(t, contains(out, tt.want), "%q is not in: %s", tt.want, out)
	}
}
