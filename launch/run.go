package launch

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const defaultGrace = 10 * time.Second

// Config says what Run starts.
type Config struct {
	// Count is the number of workers.
	Count int
	// Command is the program and its arguments; nil: this program with its own.
	Command []string
	// Env is added to this process's environment.
	Env []string
	// RunDir receives rank-N.log with each worker's output, appended; empty: the
	// output is kept only for the error message.
	RunDir string
	// Token is the job's secret; empty: GRADFUSION_TOKEN, or else a random one.
	Token string
	// Stdout and Stderr receive rank 0's output as well; nil: this process's. A
	// terminal as stdout is handed to rank 0 itself, so that it can draw on it;
	// what it draws is not filed. They are written to side by side.
	Stdout, Stderr io.Writer
	// Signals asks for the end: the first one gently, the second at once. nil:
	// SIGINT, SIGTERM and SIGHUP of this process.
	Signals <-chan os.Signal
	// Grace is how long the others may go on after a worker has failed, and
	// workers after ctx has ended; 0 means 10 s.
	Grace time.Duration
	// Started, where set, is told each worker's process id.
	Started func(rank, process int)
	// Stopped, where set, is told when a signal has stopped a worker and when it
	// goes on (Linux). It is called by a goroutine of the worker. A stopped worker
	// gets no grace once another has failed.
	Stopped func(rank, process int, stopped bool)
}

// job is a running Run.
type job struct {
	Config
	workers  []*worker
	exits    chan *worker
	over     []*worker   // in the order of their ends
	asked    os.Signal   // what ended the job from outside, nil: nothing
	signals  int         // how many have come
	failing  atomic.Bool // the grace time runs
	expired  <-chan time.Time
	stopping *time.Timer
}

// Run starts the workers, waits for all of them and returns the exit code that
// the whole job has. The error is a *WorkerError for the worker whose failure
// came first (one that only reports a lost peer yields to one that failed by
// itself), wraps ErrInterrupted with code 130, or says why nothing was started.
// When Run returns, none of the processes is left.
//
// Run must not be called by a goroutine that is locked to a thread that ends
// before Run does.
func Run(ctx context.Context, c Config) (exitCode int, err error) {
	if c.Count < 1 {
		return exitUsage, fmt.Errorf("launch: %d workers", c.Count)
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.RunDir != "" {
		if err := os.MkdirAll(c.RunDir, 0o755); err != nil {
			return exitFailed, fmt.Errorf("launch: run directory: %w", err)
		}
	}
	j := &job{Config: c, exits: make(chan *worker, c.Count)}
	if j.Signals == nil {
		signals := make(chan os.Signal, 4)
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(s) { // as nohup does
				signal.Notify(signals, s)
			}
		}
		defer signal.Stop(signals)
		j.Signals = signals
	}
	// The kernel's notice of a parent's death is tied to the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = j.start(ctx)
	if err != nil {
		j.killAll()
	}
	j.wait(ctx)
	defer func() {
		for _, w := range j.workers {
			w.release()
		}
	}()
	switch {
	case err != nil && ctx.Err() != nil:
		return exitInterrupted, err
	case err != nil:
		return exitFailed, err
	}
	return j.verdict(ctx)
}

// start opens the store's port and starts all workers. Rank 0 inherits the
// listening socket, so that no other process can take the port in between; what
// connects before rank 0 serves waits in its queue.
func (j *job) start(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		listener, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return fmt.Errorf("launch: port for the rendezvous: %w", err)
	}
	defer listener.Close()
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("launch: %v is no TCP address", listener.Addr())
	}
	socket, err := tcp.File()
	if err != nil {
		return fmt.Errorf("launch: rendezvous socket: %w", err)
	}
	defer socket.Close()
	command := j.Command
	if command == nil {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("launch: own program: %w", err)
		}
		command = append([]string{self}, os.Args[1:]...)
	}
	env := j.environment(tcp)
	for rank := range j.Count {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		w, err := j.startWorker(rank, command, env, socket)
		if err != nil {
			return fmt.Errorf("launch: start rank %d of %d (%s): %w", rank, j.Count, command[0], err)
		}
		j.workers = append(j.workers, w)
		if j.Started != nil {
			j.Started(rank, w.process())
		}
	}
	return nil
}

// environment is what all workers have in common.
func (j *job) environment(listener *net.TCPListener) []string {
	token := j.Token
	if token == "" {
		token = os.Getenv(tokenVariable)
	}
	if token == "" {
		token = rand.Text()
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String()) // as a listener prints it
	env := slices.DeleteFunc(append(os.Environ(), j.Env...), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == listenerVariable || name == parentVariable // an outer launcher's
	})
	return append(env,
		fmt.Sprintf("%s=%d", sizeVariable, j.Count),
		fmt.Sprintf("%s=%d", localSizeVariable, j.Count),
		fmt.Sprintf("%s=%s", rendezvousVariable, listener.Addr()),
		fmt.Sprintf("%s=%s", jobVariable, rand.Text()),
		fmt.Sprintf("%s=%s", tokenVariable, token),
		fmt.Sprintf("WORLD_SIZE=%d", j.Count),
		fmt.Sprintf("LOCAL_WORLD_SIZE=%d", j.Count),
		"MASTER_ADDR="+host,
		"MASTER_PORT="+port,
	)
}

// wait returns when all workers that were started have ended.
func (j *job) wait(ctx context.Context) {
	cancelled := ctx.Done()
	for len(j.over) < len(j.workers) {
		select {
		case w := <-j.exits:
			j.over = append(j.over, w)
			_, s := w.status()
			// One that died of the signal had not come to handling it: the
			// others may wait for it to join.
			if !w.killed && (j.failed(w) || j.asked != nil && s == j.asked) {
				j.limit()
			}
		case s := <-j.Signals:
			j.signalled(s)
		case <-cancelled:
			cancelled = nil
			if j.asked == nil {
				j.ask(syscall.SIGTERM)
			}
			j.limit()
		case <-j.expired:
			j.expired = nil
			j.killAll()
		}
	}
	if j.stopping != nil {
		j.stopping.Stop()
	}
}

func (j *job) signalled(s os.Signal) {
	if j.signals++; j.signals > 1 {
		j.killAll()
		return
	}
	if s == syscall.SIGHUP {
		s = syscall.SIGTERM // workers know two signals
	}
	if j.asked == nil { // ctx may have ended by the same signal
		j.ask(s)
	}
}

// ask passes a signal on to all workers.
func (j *job) ask(s os.Signal) {
	j.asked = s
	for _, w := range j.workers {
		w.signal(s)
	}
}

// limit starts the grace time, once. Workers that are stopped cannot use it.
func (j *job) limit() {
	j.failing.Store(true)
	for _, w := range j.workers {
		if w.stopped.Load() {
			w.kill()
		}
	}
	if j.stopping == nil {
		j.stopping = time.NewTimer(j.Grace)
		j.expired = j.stopping.C
	}
}

func (j *job) killAll() {
	for _, w := range j.workers {
		w.kill()
	}
}

// failed reports whether w's end is a failure and not what was asked for.
func (j *job) failed(w *worker) bool {
	code, s := w.status()
	if j.asked != nil && (code == exitInterrupted || s == j.asked) {
		return false
	}
	return code != exitDone
}
