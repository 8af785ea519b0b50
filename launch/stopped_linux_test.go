package launch

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStoppedWorker: the launcher tells of a worker that a signal stops, and of
// its going on; one that is stopped when another fails gets no grace.
func TestStoppedWorker(t *testing.T) {
	type news struct {
		rank    int
		stopped bool
	}
	h := newHolders(t)
	s := newScene(t, 2, "ready hang")
	s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
	s.Grace = time.Hour
	told := make(chan news, 8)
	var ids [2]int
	started := make(chan int, 2) // in the order of ranks
	s.Stopped = func(rank, process int, stopped bool) { told <- news{rank, stopped} }
	s.Started = func(_, process int) { started <- process }
	done := make(chan error, 1)
	code := 0
	go func() {
		var err error
		code, err = Run(t.Context(), s.Config)
		done <- err
	}()
	for rank := range ids {
		ids[rank] = <-started
	}
	h.ready(2)
	send := func(rank int, signal syscall.Signal) { require.NoError(t, syscall.Kill(ids[rank], signal)) }
	send(1, syscall.SIGSTOP)
	require.Equal(t, news{1, true}, <-told)
	send(1, syscall.SIGCONT)
	require.Equal(t, news{1, false}, <-told)
	send(1, syscall.SIGTSTP)
	require.Equal(t, news{1, true}, <-told)
	send(0, syscall.SIGKILL)
	require.ErrorContains(t, <-done, "rank 0 of 2 was killed by a signal (killed)")
	require.Equal(t, exitPeer, code)
	h.ended()
	noChildren(t)
}
