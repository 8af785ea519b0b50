package launch

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		sent os.Signal
		says string
	}{
		{os.Interrupt, "checkpoint after interrupt"},
		{syscall.SIGTERM, "checkpoint after terminated"},
		{syscall.SIGHUP, "checkpoint after terminated"},
	} {
		t.Run(c.sent.String(), func(t *testing.T) {
			h := newHolders(t)
			s := newScene(t, 2, "gentle")
			s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
			signals := make(chan os.Signal, 1)
			s.Signals = signals
			s.Started = func(rank, _ int) {
				h.ready(1)
				if rank == 1 {
					signals <- c.sent
				}
			}
			code, err := Run(t.Context(), s.Config)
			require.Equal(t, exitInterrupted, code)
			require.ErrorIs(t, err, ErrInterrupted)
			require.Contains(t, s.log(t, 0), c.says)
			require.Contains(t, s.log(t, 1), c.says)
			h.ended()
			noChildren(t)
		})
	}
}

// TestInterruptAtTheStart: a worker that does not handle signals yet dies of it,
// and those that wait for it to join do not hold the job up, nor are they to
// blame for losing it.
func TestInterruptAtTheStart(t *testing.T) {
	for _, role := range []string{"0:ready 0:hang deaf ready hang", "0:gentle gentle=lost", "0:gentle=lost gentle"} {
		h := newHolders(t)
		s := newScene(t, 2, role)
		s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
		s.Grace = 50 * time.Millisecond
		signals := make(chan os.Signal, 1)
		s.Signals = signals
		s.Started = func(rank, _ int) {
			h.ready(1)
			if rank == 1 {
				signals <- syscall.SIGTERM
			}
		}
		code, err := Run(t.Context(), s.Config)
		require.Equal(t, exitInterrupted, code, role)
		require.ErrorIs(t, err, ErrInterrupted, role)
		h.ended()
	}
}

func TestSecondInterruptKills(t *testing.T) {
	h := newHolders(t)
	s := newScene(t, 2, "deaf child ready hang")
	s.Env = append(s.Env, "LAUNCH_TEST_PIPE="+h.path)
	signals := make(chan os.Signal, 2)
	s.Signals = signals
	s.Started = func(rank, _ int) {
		h.ready(2)
		if rank == 1 {
			signals <- os.Interrupt
			signals <- os.Interrupt
		}
	}
	code, err := Run(t.Context(), s.Config)
	require.Equal(t, exitInterrupted, code)
	require.ErrorIs(t, err, ErrInterrupted)
	h.ended()
	reapOrphans(t)
}
