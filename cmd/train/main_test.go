package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer/config"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// program is the real binary, built once.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "train")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "train")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		return 1
	}
	return m.Run()
}

// start prepares the program in an empty directory with a clean environment.
func start(t *testing.T, environ, args []string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR":
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, environ...)
	return cmd
}

func code(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// badInputs are command lines, with files to write first, that must fail.
func badInputs() []struct {
	name    string
	code    int
	environ []string
	files   map[string]string
	args    string
} {
	return []struct {
		name    string
		code    int
		environ []string
		files   map[string]string
		args    string
	}{
		{name: "nothing", code: 2},
		{name: "unknown command", code: 2, args: "trian"},
		{name: "a file as a command", code: 2, args: "resnet.yaml"},
		{name: "a command of a later version", code: 2, args: "diag -nproc 2"},
		{name: "diag of nothing", code: 2, args: "diag"},
		{name: "diag of a file that is not there", code: 2, args: "diag -rank-table nowhere.json"},
		{name: "diag with an unknown flag", code: 2, args: "diag -ranktable x"},
		{name: "a rank table with faults", code: 2, files: map[string]string{"t.json": "{\"status\": \"completed\",\n \"server_count\": 1, \"server_list\": [{\"server_id\": \"a\", \"device\": [{\"device_id\": \"0\"}]}]}"},
			args: "-config mlp.yaml -nproc 1 -set collective.rank_table=t.json"},
		{name: "a rank table of another world", code: 2, files: map[string]string{"t.json": `{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{"server_id": "a", "device": [{"device_id": "0", "rank_id": "0"}]}]}`},
			args: "-config mlp.yaml -nproc 2 -set collective.rank_table=t.json"},
		{name: "no rank table", code: 2, args: "-config mlp.yaml -set collective.rank_table=t.json"},
		{name: "data without list", code: 2, args: "data"},
		{name: "version with more", code: 2, args: "version now"},
		{name: "no configuration", code: 2, args: "-nproc 2"},
		{name: "run without configuration", code: 2, args: "run"},
		{name: "unknown flag", code: 2, args: "-config mlp.yaml -nprocs 2"},
		{name: "a key as a flag", code: 2, args: "-config mlp.yaml -lr 0.1"},
		{name: "a flag without its value", code: 2, args: "-config"},
		{name: "hosts", code: 2, args: "-config mlp.yaml -hosts a,b"},
		{name: "left over", code: 2, args: "-config mlp.yaml optim.lr=0.1"},
		{name: "no processes", code: 2, args: "-config mlp.yaml -nproc 0"},
		{name: "processes in words", code: 2, args: "-config mlp.yaml -nproc two"},
		{name: "no such file", code: 2, args: "-config resnt.yaml"},
		{name: "a directory", code: 2, files: map[string]string{"d/x": ""}, args: "-config d"},
		{name: "garbage", code: 2, files: map[string]string{"a.yaml": "\xff\x00\x01"}, args: "-config a.yaml"},
		{name: "misspelt key", code: 2, files: map[string]string{"a.yaml": "model: {name: mlp}\noptim:\n  lr: 0.1\n  momentun: 0.9\n"}, args: "-config a.yaml"},
		{name: "misspelt key in configs", code: 2, files: map[string]string{"configs/a.yaml": "optm: {}\n"}, args: "-config a.yaml"},
		{name: "wrong type", code: 2, files: map[string]string{"a.yaml": "data:\n  batch: many\n"}, args: "-config a.yaml"},
		{name: "set of an unknown key", code: 2, args: "-config mlp.yaml -set optim.lrr=1"},
		{name: "variable of an unknown key", code: 2, environ: []string{"GRADFUSION_SET_OPTIM_LRR=1"}, args: "-config mlp.yaml"},
		{name: "contradictory batches", code: 2, args: "-config mlp.yaml -set train.accumulate=3"},
		{name: "contradictory batches over ranks", code: 2, args: "-config mlp.yaml -nproc 3 -set train.micro_batch=16 -set train.accumulate=2"},
		{name: "columns that do not fit", code: 2, args: "-config mlp.yaml -nproc 2 -set parallel.data=3"},
		{name: "resume without a directory", code: 2, args: "-config mlp.yaml -resume"},
		{name: "a dry run with a summary", code: 2, args: "-config mlp.yaml -set parallel.dry_run=true -summary summary.json"},
		{name: "not in this version", code: 2, args: "-config resnet.yaml -set observe.dashboard=:8080"},
		{name: "more stages than blocks", code: 2, args: "-config mlp.yaml -nproc 4 -set parallel.pipeline=4"},
		{name: "an empty stage", code: 2, args: "-config mlp.yaml -nproc 2 -set parallel.pipeline=2 -set parallel.cuts=[0]"},
		{name: "a doubled action", code: 2, files: map[string]string{"mine.csv": "0F0,0B0\n1F0,1B0,1B0\n"},
			args: "-config mlp.yaml -nproc 2 -set parallel.pipeline=2 -set parallel.schedule=mine.csv"},
		{name: "a rank of no stage", code: 2, args: "-config mlp.yaml -nproc 3 -set parallel.pipeline=2"},
		{name: "missing data", code: 2, args: "-config mlp.yaml -set data.path=nowhere -set observe.run_dir="},
		{name: "a directory without the set", code: 2, files: map[string]string{"images/readme": "", "a.yaml": "model: {name: mlp}\ndata:\n  path: images\n"}, args: "-config a.yaml -nproc 2"},
		{name: "half of a set", code: 2, files: map[string]string{"cifar/train.bin": "\x01" + strings.Repeat("x", 3072)},
			args: "-config cnn.yaml -set data.name=cifar10 -set data.path=cifar"},
		{name: "a text that is too short", code: 2, files: map[string]string{"novel.txt": "Call me Ishmael."},
			args: "-config gpt.yaml -set data.name=text -set data.path=novel.txt"},
		{name: "an empty text", code: 1, files: map[string]string{"novel.txt": ""},
			args: "-config gpt.yaml -set data.name=text -set data.path=novel.txt -set observe.run_dir="},
		{name: "a certificate that is not there", code: 2, files: map[string]string{"a.yaml": "model: {name: mlp}\ncollective:\n  tls:\n    name: files\n    cert: rank.pem\n    key: rank.key\n    ca: ca.pem\n", "rank.pem": "x"},
			args: "-config a.yaml -nproc 2"},
		{name: "a file that is no certificate", code: 2, files: map[string]string{"x.pem": "x"},
			args: "-config mlp.yaml -nproc 2 -set collective.tls.name=files -set collective.tls.cert=x.pem -set collective.tls.key=x.pem -set collective.tls.ca=x.pem"},
		{name: "data not embedded", code: 2, args: "-config mlp.yaml -set data.name=cifar10 -set observe.run_dir="},
		{name: "garbage data", code: 1, files: map[string]string{"cifar/train.bin": "abc", "cifar/test.bin": "abc"},
			args: "-config cnn.yaml -set data.name=cifar10 -set data.path=cifar -set observe.run_dir="},
		{name: "a label out of range", code: 1, files: map[string]string{"cifar/train.bin": "\xff" + strings.Repeat("x", 3072), "cifar/test.bin": "\x01" + strings.Repeat("x", 3072)},
			args: "-config cnn.yaml -set data.name=cifar10 -set data.path=cifar -set observe.run_dir="},
		{name: "ranks of one process bound", code: 2, args: "-config mlp.yaml -nproc 2 -set launch.bind_cores=true -set collective.transport=inproc -set data.name=digits -set observe.run_dir="},
		{name: "no such switch", code: 2, args: "-config mlp.yaml -set launch.bind_cores=yes -set observe.run_dir="},
		{name: "divergence", code: 1, args: "-config mlp.yaml -set data.name=digits -set optim.name=sgd -set optim.lr=1e5 -set optim.schedule.warmup=0 -set compute.kernels=naive -set observe.run_dir="},
	}
}

// TestBadInput: one clear paragraph, the right exit code, nothing on stdout, no
// stack trace, nothing left behind.
func TestBadInput(t *testing.T) {
	var all strings.Builder
	for _, row := range badInputs() {
		cmd := start(t, row.environ, strings.Fields(row.args))
		for name, text := range row.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(cmd.Dir, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o644))
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		require.Equal(t, row.code, code(err), "%s: %s", row.name, stderr.String())
		require.Empty(t, stdout.String(), row.name)
		require.NotContains(t, stderr.String(), "goroutine", row.name)
		require.NotContains(t, stderr.String(), ".go:", row.name)
		if row.code == 2 {
			require.NoDirExists(t, filepath.Join(cmd.Dir, "runs"), row.name)
		}
		fmt.Fprintf(&all, "== %s\n$ %s\n%s\n", row.name, strings.TrimSpace("train "+row.args), withoutLogs(stderr.String()))
	}
	const file = "testdata/bad_input.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

// withoutLogs drops log lines, which begin with a time.
func withoutLogs(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if len(line) < 12 || line[2] != ':' || line[5] != ':' {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestCommandsThatOnlyTell(t *testing.T) {
	for args, want := range map[string]string{
		"help": "-config FILE", "-h": "-config FILE", "run -h": "-config FILE", "help config": "optim.lr: 0.1\n",
		"version": "GradFusion ", "data list": "fashion-mnist ",
	} {
		cmd := start(t, nil, strings.Fields(args))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Run(), args)
		require.Contains(t, stdout.String(), want, args)
		require.Empty(t, stderr.String(), args)
	}
}

const short = "-config mlp.yaml -set data.name=digits -set model.hidden=[16] -set data.batch=128 -set train.steps=20 -set train.deterministic=world -set observe.log_every=5"

// TestTrainingLeavesItsFiles: summary, run directory, result, log lines; the
// configuration that it leaves repeats the run to the bit.
func TestTrainingLeavesItsFiles(t *testing.T) {
	cmd := start(t, nil, strings.Fields(short+" -set observe.run_dir=run -summary sum.json"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	require.Contains(t, stdout.String(), "mlp on digits: 20 steps on 1 rank")
	require.Contains(t, stdout.String(), "test accuracy")
	require.Equal(t, 4, strings.Count(stderr.String(), "INFO step"), "%s", &stderr)

	first := readSummary(t, filepath.Join(cmd.Dir, "sum.json"))
	require.Equal(t, first, readSummary(t, filepath.Join(cmd.Dir, "run", "summary.json")))
	require.FileExists(t, filepath.Join(cmd.Dir, "run", "metrics.jsonl"))
	c, err := config.Load(filepath.Join(cmd.Dir, "run", "config.yaml"), config.Sources{})
	require.NoError(t, err)
	require.Equal(t, 20, c.Train.Steps)
	require.Equal(t, config.Megabytes(16), c.Fusion.ThresholdMB, "what auto became")

	again := start(t, nil, []string{"-config", filepath.Join(cmd.Dir, "run", "config.yaml"), "-set", "observe.run_dir=", "-summary", "sum.json"})
	require.NoError(t, again.Run())
	require.Equal(t, first["state_sha256"], readSummary(t, filepath.Join(again.Dir, "sum.json"))["state_sha256"])
}

func readSummary(t *testing.T, path string) map[string]any {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// TestInterrupted: the first signal ends after the step with a checkpoint, and
// -resume goes on to the state of a run that was not interrupted.
func TestInterrupted(t *testing.T) {
	long := strings.Replace(short, "steps=20", "steps=4000", 1) + " -set train.eval_every=never -set observe.run_dir="
	whole := start(t, nil, strings.Fields(long+" -summary sum.json"))
	require.NoError(t, whole.Run())
	want := readSummary(t, filepath.Join(whole.Dir, "sum.json"))["state_sha256"]

	cmd := start(t, nil, strings.Fields(long+" -set checkpoint.dir=saved -set checkpoint.every=never"))
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "training starts") {
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(stderr)
	require.NoError(t, err)
	require.Equal(t, 130, code(cmd.Wait()), "%s", rest)

	resumed := start(t, nil, strings.Fields(long+" -resume -set checkpoint.dir="+filepath.Join(cmd.Dir, "saved")+" -summary sum.json"))
	out, err := resumed.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "resumed from a checkpoint")
	require.Equal(t, want, readSummary(t, filepath.Join(resumed.Dir, "sum.json"))["state_sha256"])
}
