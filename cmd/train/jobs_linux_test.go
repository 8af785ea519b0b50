package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
)

// TestSameStateHoweverStarted: one process, goroutine ranks, launched workers
// and a job that others started all end in the same state.
func TestSameStateHoweverStarted(t *testing.T) {
	args := short + " -set train.micro_batch=32 -set train.steps=6 -set train.eval_every=never -summary sum.json"
	state := func(cmd *exec.Cmd) any {
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return readSummary(t, filepath.Join(cmd.Dir, "sum.json"))["state_sha256"]
	}
	one := state(start(t, nil, strings.Fields(args)))
	require.Equal(t, one, state(start(t, nil, strings.Fields(args+" -nproc 3 -set collective.transport=inproc"))))
	launched := start(t, nil, strings.Fields(args+" -nproc 2 -set observe.run_dir=run"))
	require.Equal(t, one, state(launched))
	for _, name := range []string{"config.yaml", "summary.json", "metrics.jsonl", "rank-0.log", "rank-1.log"} {
		require.FileExists(t, filepath.Join(launched.Dir, "run", name))
	}
	require.Equal(t, one, joined(t, args))
}

// joined starts two ranks as torchrun would and returns the state's hash.
func joined(t *testing.T, args string) any {
	port := freePort(t)
	ranks := make([]*exec.Cmd, 2)
	outputs := make([]bytes.Buffer, 2)
	for r := range ranks {
		ranks[r] = start(t, []string{"RANK=" + strconv.Itoa(r), "WORLD_SIZE=2", "LOCAL_RANK=" + strconv.Itoa(r), "LOCAL_WORLD_SIZE=2",
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, strings.Fields(args))
		ranks[r].Dir = ranks[0].Dir
		ranks[r].Stdout, ranks[r].Stderr = &outputs[r], &outputs[r]
		require.NoError(t, ranks[r].Start())
	}
	for r := range ranks {
		require.NoError(t, ranks[r].Wait(), "%s", &outputs[r])
	}
	require.Empty(t, outputs[1].String(), "rank 0 alone shows what happens")
	runs, err := filepath.Glob(filepath.Join(ranks[0].Dir, "runs", "*", "rank-*.log"))
	require.NoError(t, err)
	require.Len(t, runs, 2, "both ranks use rank 0's directory")
	return readSummary(t, filepath.Join(ranks[0].Dir, "sum.json"))["state_sha256"]
}

// TestWorkerKilled: exit code 3 and one paragraph that names rank, call and
// bucket.
func TestWorkerKilled(t *testing.T) {
	stderr, lines, cmd := launchLong(t, "")
	ids := childrenOf(t, cmd.Process.Pid)
	require.Len(t, ids, 2)
	last, err := strconv.Atoi(ids[1])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(last, syscall.SIGKILL))
	text := remains(lines)
	require.Equal(t, exitNetwork, code(cmd.Wait()), text)
	require.Contains(t, text, "rank 1 of 2 was killed by a signal (killed)")
	one := strings.Join(strings.Fields(text), " ")
	require.Contains(t, one, "rank 0, group world, call ", "which call it was depends on the moment; one of a bucket names it")
	require.Contains(t, one, "rank 0 lost rank 1")
	require.NotContains(t, text, "goroutine")
	require.NoError(t, stderr.Close())
}

// TestLaunchedJobInterrupted: the first signal ends all workers after a step,
// with a checkpoint, and the second at once.
func TestLaunchedJobInterrupted(t *testing.T) {
	stderr, lines, cmd := launchLong(t, " -set checkpoint.dir=saved -set checkpoint.every=never")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	text := remains(lines)
	require.Equal(t, exitInterrupted, code(cmd.Wait()), text)
	require.Contains(t, text, "train: interrupted after a step; -resume goes on from the checkpoint in saved")
	saved, err := filepath.Glob(filepath.Join(cmd.Dir, "saved", "*.safetensors"))
	require.NoError(t, err)
	require.Len(t, saved, 1)
	require.NoError(t, stderr.Close())
}

// freePort is one that nobody listens on, below those that the system gives to
// who asks for any: other tests may do that before the process listens.
func freePort(t *testing.T) string {
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// launchLong starts two workers on a run that would take long, and returns when
// they train.
func launchLong(t *testing.T, more string) (*os.File, *bufio.Scanner, *exec.Cmd) {
	cmd := start(t, nil, strings.Fields("-config mlp.yaml -nproc 2 -set observe.run_dir=run -set train.epochs=1000"+more))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.Contains(lines.Text(), "INFO step") {
	}
	return read, lines, cmd
}

func remains(lines *bufio.Scanner) string {
	var out strings.Builder
	for lines.Scan() {
		out.WriteString(lines.Text() + "\n")
	}
	return out.String()
}

// childrenOf finds the processes whose parent is process, in order.
func childrenOf(t *testing.T, process int) []string {
	var ids []string
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", process))
	require.NoError(t, err)
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a thread that has ended
		}
		require.NoError(t, err)
		ids = append(ids, strings.Fields(string(text))...)
	}
	return ids
}

func TestHolderKeepsLastWords(t *testing.T) {
	var out bytes.Buffer
	h := &holder{out: &out}
	for _, piece := range []string{"a line\nan", "other\ntra", "in: it failed\n", "because\n", "x"} {
		_, err := h.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.Equal(t, "a line\nanother\n", out.String())
	require.Equal(t, "train: it failed\nbecause\nx", h.rest())
}

func TestWrap(t *testing.T) {
	require.Equal(t, "aa bb\ncc\nddddddddd\ne\n", wrap("aa  bb cc ddddddddd e", 5))
	require.Equal(t, "é é é\né\n", wrap("é é é é", 5))
}

func TestPanicIsOneParagraph(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c := &command{stdout: panics{}, stderr: &stderr}
	require.Equal(t, exitFailed, c.run([]string{"version"}))
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "a mistake in GradFusion")
	require.NotContains(t, stderr.String(), "goroutine")
}

// A rank on a goroutine of its own is no exception, and ends the others.
func TestPanicOfARankIsOneParagraph(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c := &command{stdout: &stdout, stderr: &stderr, train: func(ctx context.Context, job trainer.Job) (*metrics.Summary, error) {
		if job.Comm.Rank() == 1 {
			panic("met in a kernel")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	require.Equal(t, exitFailed, c.run(strings.Fields("-config mlp.yaml -nproc 3 -set collective.transport=inproc -set observe.run_dir=")), stderr.String())
	require.Empty(t, stdout.String())
	require.Contains(t, strings.Join(strings.Fields(stderr.String()), " "), "a mistake in GradFusion, not yours: met in a kernel")
	require.NotContains(t, stderr.String(), "goroutine")
}

type panics struct{}

func (panics) Write([]byte) (int, error) { panic("written to") }

// TestLiveLine: on a terminal one line is drawn again and again, also by a
// launched rank 0, and log lines of steps go to the rank's file only.
func TestLiveLine(t *testing.T) {
	for _, more := range []string{"", " -nproc 2"} {
		terminal, program := openTerminal(t)
		cmd := start(t, nil, strings.Fields(short+" -set observe.run_dir=run"+more))
		cmd.Stdout, cmd.Stderr = program, program
		require.NoError(t, cmd.Start())
		require.NoError(t, program.Close())
		shown, _ := io.ReadAll(terminal) // ends with EIO when nobody has the terminal open any more
		require.NoError(t, cmd.Wait(), "%s", shown)
		require.Contains(t, string(shown), "step 20/20", "%q", shown)
		require.Contains(t, string(shown), "[====", "%q", shown)
		require.Contains(t, string(shown), "samples/s")
		require.NotContains(t, string(shown), "INFO step")
		log, err := os.ReadFile(filepath.Join(cmd.Dir, "run", "rank-0.log"))
		require.NoError(t, err)
		require.Equal(t, 4, strings.Count(string(log), "INFO step"), "%s", log)
		require.NoError(t, terminal.Close())
	}
}

// openTerminal makes a pseudo terminal of 120 columns and returns both ends.
func openTerminal(t *testing.T) (*os.File, *os.File) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(terminal.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return terminal, program
}
