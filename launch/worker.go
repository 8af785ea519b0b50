package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// outputTime is how long a pipe may stay open after its worker has ended, in the
// hands of a child that left the process group.
const outputTime = 2 * time.Second

// firstExtra is the number that the first of exec.Cmd.ExtraFiles has in the child.
const firstExtra = 3

// worker is one process. status and killed are to be read after its end.
type worker struct {
	rank    int
	command *exec.Cmd
	log     *log
	leash   *os.File // the pipe whose end kills the worker; nobody writes to it

	stopped atomic.Bool // by a signal

	mu     sync.Mutex
	gone   bool // the process has ended; its id may soon be another's
	killed bool // by kill
}

// startWorker starts one rank in a process group of its own.
func (j *job) startWorker(rank int, command, env []string, store *os.File) (*worker, error) {
	log, err := openLog(j.RunDir, rank)
	if err != nil {
		return nil, err
	}
	held, leash, err := os.Pipe()
	if err != nil {
		_ = log.file.Close()
		return nil, err
	}
	defer held.Close()
	c := exec.Command(command[0], command[1:]...)
	c.ExtraFiles = []*os.File{held}
	c.Env = append(env[:len(env):len(env)],
		fmt.Sprintf("%s=%d", rankVariable, rank),
		fmt.Sprintf("%s=%d", localRankVariable, rank),
		fmt.Sprintf("RANK=%d", rank),
		fmt.Sprintf("LOCAL_RANK=%d", rank),
		fmt.Sprintf("%s=%d", parentVariable, firstExtra),
	)
	c.Stdout, c.Stderr = log.file, log.file
	if rank == 0 {
		c.ExtraFiles = append(c.ExtraFiles, store)
		c.Env = append(c.Env, fmt.Sprintf("%s=%d", listenerVariable, firstExtra+1))
		c.Stdout = j.rankZeroStdout(log)
		c.Stderr = &tee{log.file, orElse(j.Stderr, os.Stderr)}
		c.WaitDelay = outputTime
	}
	c.SysProcAttr = processAttributes()
	if err := c.Start(); err != nil {
		_ = leash.Close()
		_ = log.file.Close()
		return nil, err
	}
	tether(held, c.Process.Pid)
	w := &worker{rank: rank, command: c, log: log, leash: leash}
	go func() { // ends with the process; wait receives its word
		if !awaitEnd(c.Process.Pid, func(stopped bool) { j.halted(w, stopped) }) {
			_, _ = c.Process.Wait()
		}
		w.mu.Lock()
		w.gone = true
		// A rank that gives a stopped one up kills it, as the launcher would next.
		w.killed = w.killed || w.stopped.Load()
		killGroup(c.Process.Pid) // what the worker left behind
		w.mu.Unlock()
		_ = c.Wait() // the state says it all
		j.exits <- w
	}()
	return w, nil
}

func (j *job) rankZeroStdout(log *log) io.Writer {
	if j.Stdout == nil && isTerminal(os.Stdout) {
		return os.Stdout
	}
	return &tee{log.file, orElse(j.Stdout, os.Stdout)}
}

func orElse(w io.Writer, other *os.File) io.Writer {
	if w == nil {
		return other
	}
	return w
}

// halted notes that a signal has stopped a worker, or that it goes on.
func (j *job) halted(w *worker, stopped bool) {
	w.stopped.Store(stopped)
	if stopped && j.failing.Load() {
		w.kill()
	}
	if j.Stopped != nil {
		j.Stopped(w.rank, w.process(), stopped)
	}
}

func (w *worker) process() int { return w.command.Process.Pid }

// signal passes s to the worker, not to its children.
func (w *worker) signal(s os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		_ = w.command.Process.Signal(s) // it may have ended this moment
	}
}

// kill ends the worker and its children.
func (w *worker) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		w.killed = true
		killGroup(w.command.Process.Pid)
	}
}

// status is the exit code, or -1 and the signal.
func (w *worker) status() (int, os.Signal) {
	state := w.command.ProcessState
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -1, s.Signal()
	}
	return state.ExitCode(), nil
}

func (w *worker) release() {
	_ = w.leash.Close()
	_ = w.log.file.Close()
}
