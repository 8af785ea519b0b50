package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/tcp"
)

// roleVariable makes the test binary play a worker or a launcher.
const roleVariable = "LAUNCH_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	// Orphans come to the test and not to a process 1 that may not reap them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// play is the program of the processes under test. A role's words say what
// happens on which rank: "1:kill" or "exit=3" (all ranks).
func play(role string) int {
	if role == "launcher" {
		code, err := Run(context.Background(), Config{
			Count:   3,
			Command: []string{os.Args[0]},
			Env:     []string{roleVariable + "=" + os.Getenv("LAUNCH_TEST_WORKERS")},
		})
		fmt.Fprintln(os.Stderr, err)
		return code
	}
	place, started, err := FromEnvironment(os.Getenv)
	if err != nil || !started {
		fmt.Fprintln(os.Stderr, "no place:", started, err)
		return 99
	}
	for word := range strings.FieldsSeq(role) {
		if on, rest, ok := strings.Cut(word, ":"); ok {
			if on != fmt.Sprint(place.Rank) {
				continue
			}
			word = rest
		}
		action, value, _ := strings.Cut(word, "=")
		if code, end := act(place, action, value); end {
			return code
		}
	}
	return 0
}

// act does one word of a role and reports whether that ends the process.
func act(place Place, action, value string) (code int, end bool) {
	switch action {
	case "exit":
		_, _ = fmt.Sscan(value, &code)
		return code, true
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "panic":
		panic(value)
	case "say":
		fmt.Println("out", place.Rank, value)
		fmt.Fprintln(os.Stderr, "err", place.Rank, value)
	case "crash": // with a stack that fills pages
		fmt.Fprintln(os.Stderr, "panic: "+value+"\n\n"+strings.Repeat("goroutine 1 [running]:\n", 2000))
		return 2, true
	case "deaf":
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	case "child": // one that lives until it is killed, ignores signals and is not asked for
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), roleVariable+"=deaf ready hang")
		if err := c.Start(); err != nil {
			return 98, true
		}
	case "ready":
		hold()
	case "hang":
		select {}
	case "watch":
		if errors.Is(WatchParent(context.Background(), place), ErrOrphan) {
			return exitPeer, true
		}
		return 97, true
	case "gentle": // ready to be interrupted
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		hold()
		s := <-signals
		fmt.Println("checkpoint after", s)
		if value == "lost" {
			return exitPeer, true
		}
		return exitInterrupted, true
	case "meet":
		return meet(place), true
	case "train":
		return train(place, value), true
	case "mistake":
		return mistake(place, value), true
	default:
		return 96, true
	}
	return 0, false
}

// hold opens the test's pipe, says so, and keeps it open for life: the pipe ends
// when the last holder has ended.
func hold() {
	pipe, err := os.OpenFile(os.Getenv("LAUNCH_TEST_PIPE"), os.O_WRONLY, 0)
	if err != nil {
		os.Exit(95)
	}
	fmt.Fprintln(pipe, os.Getpid())
}

// meet publishes the rank and reads all others from the store.
func meet(place Place) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	meeting, err := Connect(ctx, place)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitPeer
	}
	var keys []string
	for rank := range place.Size {
		keys = append(keys, fmt.Sprint("here/", rank))
	}
	err = meeting.Store.Set(ctx, keys[place.Rank], []byte(meeting.LocalAddr()))
	if err == nil {
		_, err = meeting.Store.Wait(ctx, keys...)
	}
	if err = errors.Join(err, meeting.Close(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitPeer
	}
	fmt.Println("rank", place.Rank, "met", place.Size, "at", meeting.LocalAddr())
	return 0
}

// train joins the world and passes a message around; then one rank dies and the
// others wait for it.
func train(place Place, dies string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return exitPeer
	}
	meeting, err := Connect(ctx, place)
	if err != nil {
		return fail(err)
	}
	world, err := tcp.Join(ctx, tcp.Config{
		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
		Store: meeting.Store, ListenAddr: meeting.LocalAddr(),
	})
	if err != nil {
		return fail(err)
	}
	defer world.Close()
	next, before := (place.Rank+1)%place.Size, (place.Rank+place.Size-1)%place.Size
	b := []byte("once around")
	if err := errors.Join(world.Send(ctx, next, 1, b), world.Recv(ctx, before, 1, b)); err != nil {
		return fail(err)
	}
	var dying int
	if _, err := fmt.Sscan(dies, &dying); err != nil {
		return exitUsage
	}
	if place.Rank == dying {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	err = world.Recv(ctx, dying, 2, b)
	// The other survivor may have left first; the one to blame is whom that lost.
	if departed := (*collective.DepartedError)(nil); errors.As(err, &departed) {
		err = fmt.Errorf("rank %d lost rank %d: %w", place.Rank, departed.Lost, err)
	}
	return fail(err)
}

// holders watches the processes that have called hold.
type holders struct {
	t    *testing.T
	path string
	own  *os.File // keeps the pipe from ending before the first holder
	read *bufio.Reader
}

func newHolders(t *testing.T) *holders {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	keep, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, file.SetReadDeadline(time.Now().Add(2*time.Minute)))
	t.Cleanup(func() { _ = file.Close() })
	return &holders{t: t, path: path, own: keep, read: bufio.NewReader(file)}
}

// ready returns when n processes hold the pipe.
func (h *holders) ready(n int) {
	h.t.Helper()
	for range n {
		_, err := h.read.ReadString('\n')
		require.NoError(h.t, err)
	}
}

// ended returns when no process holds the pipe any more.
func (h *holders) ended() {
	h.t.Helper()
	require.NoError(h.t, h.own.Close())
	_, err := io.Copy(io.Discard, h.read)
	require.NoError(h.t, err, "some process still lives")
}

// reapOrphans waits for the children of dead workers, which are dead or dying
// when ended has returned.
func reapOrphans(t *testing.T) {
	t.Helper()
	for {
		_, err := unix.Wait4(-1, nil, 0, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			require.NoError(t, err)
		}
	}
}

// noChildren says that Run has left nothing to be waited for.
func noChildren(t *testing.T) {
	t.Helper()
	_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	require.ErrorIs(t, err, unix.ECHILD)
}
