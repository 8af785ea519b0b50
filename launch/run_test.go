package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scene is one Run under test.
type scene struct {
	Config
	out, err bytes.Buffer
	dir      string
}

func newScene(t *testing.T, count int, role string) *scene {
	s := &scene{dir: t.TempDir()}
	s.Config = Config{
		Count:   count,
		Command: []string{os.Args[0]},
		Env:     []string{roleVariable + "=" + role},
		RunDir:  s.dir,
		Stdout:  &s.out,
		Stderr:  &s.err,
		Grace:   time.Minute,
		Signals: make(chan os.Signal),
	}
	return s
}

func (s *scene) log(t *testing.T, rank int) string {
	b, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("rank-%d.log", rank)))
	require.NoError(t, err)
	return string(b)
}

func TestOutputIsFiled(t *testing.T) {
	s := newScene(t, 3, "say=hello")
	code, err := Run(t.Context(), s.Config)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "out 0 hello\n", s.out.String())
	require.Equal(t, "err 0 hello\n", s.err.String())
	for rank := range 3 {
		require.Contains(t, s.log(t, rank), fmt.Sprintf("out %d hello\n", rank))
		require.Contains(t, s.log(t, rank), fmt.Sprintf("err %d hello\n", rank))
	}
	noChildren(t)
	files, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "nothing but the logs is left")

	// A second run appends, and its error quotes only its own lines.
	s = &scene{Config: s.Config, dir: s.dir}
	s.Stdout, s.Stderr = &s.out, &s.err
	s.Env = []string{roleVariable + "=1:exit=7"}
	code, err = Run(t.Context(), s.Config)
	require.Equal(t, exitFailed, code)
	require.NotContains(t, err.Error(), "hello")
	require.Contains(t, s.log(t, 1), "hello")
}

func TestWorkersMeet(t *testing.T) {
	s := newScene(t, 4, "meet")
	code, err := Run(t.Context(), s.Config)
	require.NoError(t, err)
	require.Zero(t, code)
	for rank := range 4 {
		require.Contains(t, s.log(t, rank), fmt.Sprintf("rank %d met 4 at 127.0.0.1\n", rank))
	}
	noChildren(t)
}

// TestDeathInAWorld: whichever rank dies, rank 0 and its store included, the
// others notice by themselves, long before the grace is over.
func TestDeathInAWorld(t *testing.T) {
	for dies := range 3 {
		s := newScene(t, 3, fmt.Sprintf("train=%d", dies))
		code, err := Run(t.Context(), s.Config)
		require.Equal(t, exitPeer, code)
		require.ErrorContains(t, err, fmt.Sprintf("rank %d of 3 was killed", dies))
		for rank := range 3 {
			if rank != dies {
				require.Contains(t, s.log(t, rank), fmt.Sprintf("rank %d lost rank %d", rank, dies))
			}
		}
		noChildren(t)
	}
}

// TestWitness: the error for a worker that was killed holds what a survivor saw
// of it, also when it is rank 0 that died.
func TestWitness(t *testing.T) {
	s := newScene(t, 3, "train=0")
	_, err := Run(t.Context(), s.Config)
	var failure *WorkerError
	require.ErrorAs(t, err, &failure)
	require.NotZero(t, failure.Witness)
	require.Contains(t, strings.Join(failure.WitnessLines, " "), "lost rank 0")
}

// TestBrokenOutputs: a worker outlives the disk and the terminal that its words
// go to.
func TestBrokenOutputs(t *testing.T) {
	s := newScene(t, 2, strings.Repeat("0:say=word ", 1000))
	s.Stderr = broken{}
	code, err := Run(t.Context(), s.Config)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Contains(t, s.log(t, 0), "err 0 word")
	require.Contains(t, s.out.String(), "out 0 word")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name, role string
		code, rank int
		says       string
	}{
		{"training failed", "1:say=reason 1:exit=1 exit=3", 1, 1, "err 1 reason"},
		{"usage", "exit=2", 2, -1, "exit code 2"},
		{"network", "0:exit=3 watch", 3, 0, "exit code 3"},
		{"interrupted by itself", "2:exit=130 exit=0", 130, 2, "exit code 130"},
		{"unknown code", "0:exit=42 exit=0", 1, 0, "exit code 42"},
		{"killed", "1:kill exit=0", 3, 1, "killed by a signal (killed)"},
		{"panic", "2:panic=mistake exit=0", 1, 2, "panic: mistake"},
		{"panic with long stacks", "2:crash=mistake exit=0", 1, 2, "panic: mistake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 3, c.role)
			if strings.Contains(c.role, "watch") {
				s.Grace = 10 * time.Millisecond // they do not end by themselves
			}
			code, err := Run(t.Context(), s.Config)
			require.Equal(t, c.code, code)
			require.ErrorContains(t, err, c.says)
			var failure *WorkerError
			require.ErrorAs(t, err, &failure)
			if c.rank >= 0 {
				require.Equal(t, c.rank, failure.Rank)
				require.ErrorContains(t, err, fmt.Sprintf("rank-%d.log", c.rank))
			}
			noChildren(t)
		})
	}
}

// TestFirstFailureIsBlamed: a worker that reports the loss of another and ends
// first is not the cause.
func TestFirstFailureIsBlamed(t *testing.T) {
	h := newHolders(t)
	s := newScene(t, 2, "0:exit=3 1:gentle")
	s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
	processes := map[int]int{}
	s.Started = func(rank, process int) {
		processes[rank] = process
		if rank == 1 {
			h.ready(1)
			_ = syscall.Kill(process, syscall.SIGKILL) // after rank 0 or before: both give the same
		}
	}
	code, err := Run(t.Context(), s.Config)
	require.Equal(t, exitPeer, code)
	require.ErrorContains(t, err, "rank 1 of 2 was killed")
	h.ended()
}

func TestOthersAreKilledAfterTheGrace(t *testing.T) {
	h := newHolders(t)
	s := newScene(t, 3, "1:kill deaf child ready hang")
	s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
	s.Grace = 50 * time.Millisecond
	code, err := Run(t.Context(), s.Config)
	require.Equal(t, exitPeer, code)
	require.ErrorContains(t, err, "rank 1 of 3 was killed by a signal")
	h.ended()
	reapOrphans(t)
}

func TestCancelledContext(t *testing.T) {
	h := newHolders(t)
	s := newScene(t, 2, "0:gentle deaf ready hang")
	s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
	s.Grace = 3 * time.Second // rank 0 ends in it, the deaf rank 1 does not
	ctx, cancel := context.WithCancel(t.Context())
	s.Started = func(rank, _ int) {
		h.ready(1)
		if rank == 1 {
			cancel()
		}
	}
	code, err := Run(ctx, s.Config)
	require.Equal(t, exitInterrupted, code)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, s.log(t, 0), "checkpoint after terminated")
	h.ended()
	noChildren(t)
}

func TestNothingToStart(t *testing.T) {
	code, err := Run(t.Context(), Config{})
	require.Equal(t, exitUsage, code)
	require.Error(t, err)
	code, err = Run(t.Context(), Config{Count: 2, Command: []string{"/no/such/program"}})
	require.Equal(t, exitFailed, code)
	require.ErrorContains(t, err, "rank 0 of 2 (/no/such/program)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, err = Run(ctx, Config{Count: 2, Command: []string{os.Args[0]}})
	require.Equal(t, exitInterrupted, code)
	require.True(t, errors.Is(err, context.Canceled))
	noChildren(t)
}

func TestWatchParentEndsWithItsContext(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer write.Close()
	fd, err := syscall.Dup(int(read.Fd()))
	require.NoError(t, err)
	require.NoError(t, read.Close())
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 2)
	go func() { result <- WatchParent(ctx, Place{parent: fd}) }()
	go func() { result <- WatchParent(ctx, Place{}) }()
	cancel()
	require.NoError(t, <-result)
	require.NoError(t, <-result)
}
