//go:build ascend

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/device"
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
	return binary, []string{"ASCEND_HOME_PATH=" + home, "HCCL_HOST_SOCKET_PORT_RANGE=auto", "ASCENDSIM_CONNECT_TIMEOUT_MS=300000"}
}

// figures are those of a summary that two backends share.
type figures struct{ gradients, state, accuracy any }

// TestAscend runs the program over the simulated libraries.
func TestAscend(t *testing.T) {
	p := &ascendRuns{}
	p.binary, p.environ = ascendProgram(t)
	for name, test := range map[string]func(*testing.T){
		"equals cpu": p.equalsCPU, "refusals": p.refusals, "npu-smi": p.asksSMI, "wires": p.wires, "overlap": p.overlap, "kernels": p.kernels,
	} {
		t.Run(name, test)
	}
}

type ascendRuns struct {
	binary  string
	environ []string
}

// training runs a small one and returns its summary and what it wrote.
func (p *ascendRuns) training(t *testing.T, args ...string) (map[string]any, []byte) {
	t.Helper()
	summary := filepath.Join(t.TempDir(), "summary.json")
	cmd := start(t, p.environ, append([]string{"-summary", summary, "-set", "train.epochs=0", "-set", "data.name=synthetic", "-set", "data.batch=16",
		"-set", "data.train_samples=96", "-set", "data.test_samples=32", "-set", "observe.run_dir=", "-set", "collective.timeout=5m"}, args...))
	cmd.Path = p.binary
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return readSummary(t, summary), out
}

// equalsCPU: two ranks have one order of addition, and under
// train.deterministic: world any number has, so that not a bit differs.
func (p *ascendRuns) equalsCPU(t *testing.T) {
	for _, args := range [][]string{
		{"-nproc", "2"},
		{"-nproc", "2", "-set", "collective.transport=inproc"},
		{"-nproc", "3", "-set", "train.deterministic=world", "-set", "data.batch=24"},
		{"-nproc", "2", "-set", "parallel.pipeline=2", "-set", "train.accumulate=4"},
		{"-nproc", "2", "-set", "parallel.shard_optimizer=true"},
	} {
		var results []figures
		for _, backend := range []string{"cpu", "ascend"} {
			all, out := p.training(t, append([]string{"-config", "resnet.yaml", "-set", "collective.backend=" + backend,
				"-set", "train.steps=3", "-set", "compute.kernels=portable"}, args...)...)
			require.Equal(t, backend == "ascend", contains(out, "ranks on devices: Ascend910B3, CANN "), "%s", out)
			results = append(results, figures{all["grad_sha256_first"], all["state_sha256"], all["eval_accuracy"]})
		}
		require.Equal(t, results[0], results[1], "%v", args)
		require.NotEmpty(t, results[0].gradients)
	}
}

func (p *ascendRuns) refusals(t *testing.T) {
	bare := t.TempDir() // a home without operators
	for _, library := range []string{"libascendcl.so", "libhccl.so", "libhcomm.so"} {
		require.NoError(t, os.MkdirAll(filepath.Join(bare, "lib64"), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(p.environ[0][len("ASCEND_HOME_PATH="):], "lib64", library), filepath.Join(bare, "lib64", library)))
	}
	const communicates, computes = "collective.backend=ascend", "compute.kernels=ascend"
	for _, tt := range []struct {
		set, environ string
		code         int
		want         string
	}{
		{communicates, "ASCEND_HOME_PATH=", exitUsage, "collective.backend: ascend: the Ascend runtime cannot be loaded"},
		{computes, "ASCEND_HOME_PATH=", exitUsage, "compute.kernels: ascend: the Ascend runtime cannot be loaded"},
		{communicates, "ASCENDSIM_BUSY=1", exitFailed, "device 1 cannot be taken"},
		{communicates, "ASCENDSIM_DEVICES=1", exitFailed, "device 1 is missing"},
		{computes, "ASCENDSIM_DEVICES=1", exitFailed, "device 1 is missing"},
		{communicates, "HCCL_CONNECT_TIMEOUT=5", exitNetwork, "EI0001"},
		{computes, "ASCEND_HOME_PATH=" + bare, exitFailed, "libopapi.so cannot be loaded: tried " + bare + "/lib64/libopapi.so ("},
		{computes, "ASCENDSIM_CHIP=910A", exitFailed, "Ascend910A has no product of float32 matrices"},
	} {
		cmd := start(t, append(slices.Clone(p.environ), tt.environ), []string{"bench", "-nproc", "2", "-set", tt.set, "-sizes", "4KiB"})
		cmd.Path = p.binary
		out, err := cmd.CombinedOutput()
		require.Equal(t, tt.code, code(err), "%v: %s", tt, out)
		require.True(t, contains(out, tt.want), "%q is not in: %s", tt.want, out)
	}
}

// asksSMI: what npu-smi says of the rank's devices is refused, warned of, or silent.
func (p *ascendRuns) asksSMI(t *testing.T) {
	text, err := filepath.Abs("../../device/ascend/testdata/smi-910b.txt")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "npu-smi"), fmt.Appendf(nil, "#!/bin/sh\ntest \"$1\" = info && exec cat %s\n", text), 0o755))
	const used = "device 1, which this rank takes, is not idle and well (npu-smi: NPU 1 chip 0 (910B3): health OK, used by process 123456 (python, 27900 MB) and"
	for _, tt := range []struct {
		ranks     string
		transport string // of ranks in one process the warnings are seen at once
		environ   []string
		code      int
		want      string
	}{
		{"2", "inproc", nil, 0, used},
		{"2", "auto", []string{"ASCENDSIM_BUSY=1"}, exitFailed, "device 1 cannot be taken"},
		{"3", "auto", nil, exitFailed, "device 2 is not healthy (npu-smi: NPU 2 chip 0 (910B3): health Alarm)"},
		{"1", "auto", []string{"DEVICE_ID=1", "ASCEND_RT_VISIBLE_DEVICES=0,2"}, exitFailed, "device 1 is not healthy (npu-smi: NPU 2"},
	} {
		cmd := start(t, append(append(slices.Clone(p.environ), "PATH="+dir+":"+os.Getenv("PATH")), tt.environ...),
			[]string{"bench", "-nproc", tt.ranks, "-set", "collective.transport=" + tt.transport, "-set", "collective.backend=ascend", "-sizes", "4KiB"})
		cmd.Path = p.binary
		out, err := cmd.CombinedOutput()
		require.Equal(t, tt.code, code(err), "%v: %s", tt, out)
		require.True(t, contains(out, tt.want), "%q is not in: %s", tt.want, out)
	}
}

// wires: PowerSGD's factors are sums of two ranks, whose bits are the CPU's; the
// other formats cut vectors elsewhere, so that they only train alike.
func (p *ascendRuns) wires(t *testing.T) {
	for _, wire := range []string{"{name: powersgd, start: 1}", "int8", "int4", "topk"} {
		var losses []float64
		var states []any
		for _, backend := range []string{"cpu", "ascend"} {
			all, _ := p.training(t, "-config", "mlp.yaml", "-nproc", "2", "-set", "model.hidden=[32]", "-set", "train.steps=12", "-set", "train.eval_every=never",
				"-set", "fusion.wire="+wire, "-set", "compute.kernels=portable", "-set", "collective.backend="+backend)
			losses, states = append(losses, all["loss_last"].(float64)), append(states, all["state_sha256"])
		}
		require.InEpsilon(t, losses[0], losses[1], 0.1, wire)
		require.Equal(t, strings.Contains(wire, "powersgd"), states[0] == states[1], wire)
	}
	all, _ := p.training(t, "-config", "mlp.yaml", "-nproc", "2", "-set", "model.hidden=[32]", "-set", "train.steps=12", "-set", "train.eval_every=never",
		"-set", "fusion.wire=f16", "-set", "collective.device_halves=true", "-set", "collective.backend=ascend")
	require.Less(t, all["loss_last"].(float64), all["loss_first"].(float64))
}

// overlap: copies to the device, and from it, and collectives, go on beside the
// backward pass of the rank that waits for them.
func (p *ascendRuns) overlap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	p.training(t, "-config", "resnet.yaml", "-nproc", "2", "-set", "train.steps=3", "-set", "train.eval_every=never", "-set", "fusion.threshold_mb=0.02",
		"-set", "fusion.first_mb=0.001", "-set", "observe.trace=true", "-set", "observe.run_dir="+dir, "-set", "collective.backend=ascend")
	raw, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	require.NoError(t, err)
	type event struct {
		Name, Ph, Cat string
		PID, TID      int
		TS, Dur       float64
		Args          struct{ Name string }
	}
	var trace struct{ TraceEvents []event }
	require.NoError(t, json.Unmarshal(raw, &trace))
	lanes := map[[2]int]string{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "M" && e.Name == "thread_name" {
			lanes[[2]int{e.PID, e.TID}] = e.Args.Name
		}
	}
	beside := map[string]int{}
	for _, b := range trace.TraceEvents {
		if b.Ph != "X" || b.Cat != "backward" {
			continue
		}
		for _, e := range trace.TraceEvents {
			lane := strings.TrimRight(lanes[[2]int{e.PID, e.TID}], " ()0123456789")
			if e.Ph == "X" && e.Cat == "call" && e.PID == b.PID && e.TS >= b.TS && e.TS+e.Dur <= b.TS+b.Dur {
				beside[lane]++
			}
		}
	}
	for _, lane := range []string{"world", "world to device", "world from device"} {
		require.NotZero(t, beside[lane], "%s lies in no backward pass: %v", lane, beside)
	}
}

// kernels: the first step's gradients, which an optimizer with momentum has as its
// state, are the CPU's but for the order of additions.
func (p *ascendRuns) kernels(t *testing.T) {
	gradients := func(args ...string) checkpoint.State {
		dir := filepath.Join(t.TempDir(), "checkpoints")
		p.training(t, append([]string{"-config", "mlp.yaml", "-set", "model.hidden=[48,32]", "-set", "train.steps=1", "-set", "train.eval_every=never", "-set", "optim.name=momentum",
			"-set", "optim.weight_decay=0", "-set", "checkpoint.every=1 steps", "-set", "checkpoint.dir=" + dir}, args...)...)
		list, err := checkpoint.List(dir)
		require.NoError(t, err)
		state, err := checkpoint.Read(list[len(list)-1].Path)
		require.NoError(t, err)
		return state
	}
	want := gradients("-set", "compute.kernels=portable")
	for _, args := range [][]string{{"-nproc", "1"}, {"-nproc", "2"}, {"-nproc", "2", "-set", "collective.backend=ascend"}} {
		got := gradients(append(args, "-set", "compute.kernels=ascend")...)
		compared := 0
		for i, w := range want.Tensors {
			if w.Type != device.F32 || !strings.HasSuffix(w.Name, "/momentum") {
				continue
			}
			compared++
			a, b := device.FromBytes(w.Type, got.Tensors[i].Data).F32(), device.FromBytes(w.Type, w.Data).F32()
			var difference, size float64
			for k := range b {
				difference += float64(a[k]-b[k]) * float64(a[k]-b[k])
				size += float64(b[k]) * float64(b[k])
			}
			require.Positive(t, size, w.Name)
			require.LessOrEqual(t, math.Sqrt(difference), 1e-6*math.Sqrt(size), "%v: %s", args, w.Name)
		}
		require.Equal(t, 6, compared, "weights and biases of three layers")
	}
	// Layers of 16 bits convert on the device; a training gets better over it.
	all, _ := p.training(t, "-config", "cnn.yaml", "-set", "train.steps=12", "-set", "train.eval_every=never", "-set", "amp.level=O2", "-set", "amp.type=bf16", "-set", "compute.kernels=ascend")
	require.Less(t, all["loss_last"].(float64), all["loss_first"].(float64))
}
