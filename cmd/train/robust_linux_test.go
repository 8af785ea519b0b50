package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/launch"
)

// run returns the exit code, and both outputs on one line each.
func run(t *testing.T, cmd *exec.Cmd) (exit int, out, words string) {
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	exit = code(cmd.Run())
	require.NotContains(t, stderr.String(), "goroutine")
	return exit, stdout.String(), strings.Join(strings.Fields(withoutLogs(stderr.String())), " ")
}

// TestFoundBeforeTraining: what would make a training worthless is told at its
// start.
func TestFoundBeforeTraining(t *testing.T) {
	for args, says := range map[string]string{
		"-summary no/where.json":                                          "-summary: open no/.summary-",
		"-summary .":                                                      "-summary: . is a directory",
		"-set checkpoint.dir=/proc/none":                                  "checkpoint.dir cannot be written to",
		"-set checkpoint.dir=/proc/none -nproc 2":                         "checkpoint.dir cannot be written to",
		"-set model.hidden=[2000000000,2000000000]":                       "parameters; weights and gradients",
		"-set model.hidden=[2000000000,2000000000] -nproc 2":              "parameters; weights and gradients",
		"-set data.name=synthetic -set model.name=cnn -set data.height=3": "model.name: model cnn: images of 3 x 32 are too small",
		"-set optim.schedule.warmup=1000":                                 "warmup takes 1000 steps of a run of 20",
		"-set data.name=synthetic -set data.train_samples=2000000000":     "data.train_samples: 2000000000 made-up images",
	} {
		exit, out, words := run(t, start(t, nil, strings.Fields(short+" "+args)))
		require.Equal(t, exitUsage, exit, "%s: %s", args, words)
		require.Contains(t, words, says, args)
		require.Empty(t, out, args)
	}
}

// TestConfigurationThatCanBeReadOnce: workers that would find an empty file in
// place of a pipe must not train as it says.
func TestConfigurationThatCanBeReadOnce(t *testing.T) {
	const text = "model: {name: mlp, hidden: [8]}\ndata: {name: digits}\ntrain: {steps: 2}\nobserve: {run_dir: \"\"}\n"
	cmd := start(t, nil, strings.Fields("-config /dev/stdin"))
	cmd.Stdin = strings.NewReader(text)
	exit, out, words := run(t, cmd)
	require.Zero(t, exit, words)
	require.Contains(t, out, "mlp on digits: 2 steps")

	cmd = start(t, nil, strings.Fields("-config /dev/stdin -nproc 2"))
	cmd.Stdin = strings.NewReader(text)
	exit, out, words = run(t, cmd)
	require.Equal(t, exitUsage, exit, words)
	require.Contains(t, words, "the workers do not find the settings that the launcher read")
	require.Empty(t, out)
}

// TestFullOutputs: a result that cannot be written is an error, log lines that
// cannot are none, also for workers.
func TestFullOutputs(t *testing.T) {
	for _, more := range []string{"", " -nproc 2"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		defer full.Close()
		cmd := start(t, nil, strings.Fields(short+more))
		cmd.Stderr = full
		exit, out, _ := run(t, cmd)
		require.Zero(t, exit, more)
		require.Contains(t, out, "test accuracy", more)

		cmd = start(t, nil, strings.Fields(short+more))
		cmd.Stdout = full
		exit, _, words := run(t, cmd)
		require.Equal(t, exitFailed, exit, words)
		require.Contains(t, words, "the result cannot be written to the standard output", more)
	}
}

// TestReasonOfRankZero: the ranks that were only told of a failure are not
// blamed for it, and what all ranks say is no single one's.
func TestReasonOfRankZero(t *testing.T) {
	saved := t.TempDir()
	exit, _, words := run(t, start(t, nil, strings.Fields(short+" -set checkpoint.dir="+saved)))
	require.Zero(t, exit, words)
	exit, _, words = run(t, start(t, nil, strings.Fields(short+" -nproc 3 -resume -set train.seed=9 -set checkpoint.dir="+saved)))
	require.Equal(t, exitUsage, exit, words)
	require.Contains(t, words, "train.seed is 9, and checkpoint")
	require.Contains(t, words, "is of a run with 1")
	exit, _, words = run(t, start(t, nil, strings.Fields(short+" -nproc 2 -set optim.name=sgd -set optim.lr=1e5 -set optim.schedule.warmup=0")))
	require.Equal(t, exitFailed, exit, words)
	require.Contains(t, words, "train: the training diverged")
}

// TestRankZeroKilled: a survivor says which call failed.
func TestRankZeroKilled(t *testing.T) {
	stderr, lines, cmd := launchLong(t, "")
	ids := childrenOf(t, cmd.Process.Pid)
	require.Len(t, ids, 2)
	first, err := strconv.Atoi(ids[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	text := remains(lines)
	require.Equal(t, exitNetwork, code(cmd.Wait()), text)
	one := strings.Join(strings.Fields(text), " ")
	require.Contains(t, one, "rank 0 of 2 was killed by a signal (killed)")
	require.Contains(t, one, "What rank 1 saw of it: ")
	require.Contains(t, one, "rank 1, group world, call ")
	require.NoError(t, stderr.Close())
}

// TestDifferentWays: ranks that are set to meet in different ways all say so at once.
func TestDifferentWays(t *testing.T) {
	for _, c := range []struct{ key, first, second string }{
		{"collective.transport", "shm", "tcp"},
		{"collective.algorithm", "ring", "tree"},
		{"collective.pack", "auto", "true"},
	} {
		port := freePort(t)
		ranks, words := make([]*exec.Cmd, 3), make([]bytes.Buffer, 3)
		for r, value := range []string{c.first, c.first, c.second} {
			ranks[r] = start(t, []string{"RANK=" + strconv.Itoa(r), "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port},
				strings.Fields(short+" -set observe.run_dir= -set collective.timeout=5m -set "+c.key+"="+value))
			ranks[r].Stderr = &words[r]
			require.NoError(t, ranks[r].Start())
		}
		for r := range ranks {
			require.Equal(t, exitUsage, code(ranks[r].Wait()), &words[r])
			one := strings.Join(strings.Fields(words[r].String()), " ")
			require.Contains(t, one, fmt.Sprintf("the ranks differ: rank 0 has %q, rank 2 has %q", c.key+": "+c.first, c.key+": "+c.second))
		}
	}
}

// TestSecondSignal: it ends a step that takes long, and says so.
func TestSecondSignal(t *testing.T) {
	cmd := start(t, nil, strings.Fields("-config resnet.yaml -nproc 2 -set collective.transport=inproc -set data.batch=4096 -set observe.run_dir="))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	var text []byte
	for b := make([]byte, 4096); !bytes.Contains(text, []byte("training starts")); {
		n, err := read.Read(b)
		require.NoError(t, err, "%s", text)
		text = append(text, b[:n]...)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM)) // one of the same kind may merge with the first
	var rest bytes.Buffer
	_, err = rest.ReadFrom(read)
	require.NoError(t, err)
	require.Equal(t, exitInterrupted, code(cmd.Wait()), "%s", &rest)
	require.Contains(t, rest.String(), "train: interrupted")
	require.NoError(t, read.Close())
}

// TestStaleVariableShowsNothing: a variable of an outer launcher does not put
// the live line among the results.
func TestStaleVariableShowsNothing(t *testing.T) {
	cmd := start(t, []string{liveVariable + "=1"}, strings.Fields(short+" -nproc 2 -set observe.run_dir=run"))
	exit, out, words := run(t, cmd)
	require.Zero(t, exit, words)
	require.NotContains(t, out, "training starts")
	require.FileExists(t, filepath.Join(cmd.Dir, "run", "summary.json"))
}

// TestStopWhileJoining: a rank that waits for others ends at the first signal.
func TestStopWhileJoining(t *testing.T) {
	port := freePort(t)
	address := "127.0.0.1:" + port
	cmd := start(t, []string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, strings.Fields(short+" -set observe.run_dir= -set collective.timeout=5m"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	for { // until rank 0 waits for rank 1, which never comes
		if conn, err := net.Dial("tcp", address); err == nil {
			require.NoError(t, conn.Close())
			break
		}
		runtime.Gosched()
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, exitInterrupted, code(cmd.Wait()), &stderr)
	require.Equal(t, "train: interrupted; nothing was saved, as checkpoint.dir is not set\n", stderr.String())
}

// TestOutOfMemoryIsNoBug: memory that ends is the machine's.
func TestOutOfMemoryIsNoBug(t *testing.T) {
	err := (&job{}).ended(1, &launch.WorkerError{Rank: 1, Count: 2, Code: 2, LastLines: []string{"fatal error: runtime: out of memory", "", "goroutine 1"}}, "")
	require.Equal(t, exitFailed, exitCode(err))
	require.Contains(t, paragraph(err), "train: rank 1 of 2 ran out of memory")
}

// TestNoSpaceForSettings: a run whose settings cannot be kept does not begin, and
// leaves no directory with a part of them. A limit on the size of files, of that
// process only, stands for a full disk.
func TestNoSpaceForSettings(t *testing.T) {
	cmd := start(t, nil, strings.Fields(short))
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -f 0; exec "$0" "$@"`}, cmd.Args...)
	exit, _, words := run(t, cmd)
	require.Equal(t, exitFailed, exit)
	require.Contains(t, words, "the settings cannot be written into the run's directory runs/")
	require.Contains(t, words, "file too large")
	left, err := os.ReadDir(filepath.Join(cmd.Dir, "runs"))
	require.NoError(t, err)
	require.Empty(t, left)
}
