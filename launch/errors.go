package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The exit codes of workers and launcher.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPeer        = 3 // a peer or the network failed, or a worker was killed
	exitInterrupted = 130
)

// ErrInterrupted is returned when the job ended because a signal asked for it.
var ErrInterrupted = errors.New("interrupted")

// WorkerError says which worker failed first and how.
type WorkerError struct {
	Rank, Count int
	Code        int       // its exit code, -1 when a signal ended it
	Signal      os.Signal // nil when it exited by itself
	Log         string    // file with its output, "" when none is kept
	LastLines   []string
	// For a worker that a signal ended: what the first one that lost it wrote
	// last, and its rank. Empty where nobody said anything.
	Witness      int
	WitnessLines []string
}

func (e *WorkerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d of %d ", e.Rank, e.Count)
	if e.Signal != nil {
		fmt.Fprintf(&b, "was killed by a signal (%v)", e.Signal)
	} else {
		fmt.Fprintf(&b, "failed with exit code %d", e.Code)
	}
	if len(e.LastLines) == 0 {
		b.WriteString(" and left no output")
	} else {
		b.WriteString("; its last lines")
	}
	if e.Log != "" {
		fmt.Fprintf(&b, " (%s)", e.Log)
	}
	if len(e.LastLines) > 0 {
		b.WriteString(":")
	}
	for _, line := range e.LastLines {
		b.WriteString("\n    ")
		b.WriteString(line)
	}
	return b.String()
}

// exitCode is the launcher's own exit code for this failure. Go ends a program
// that panics with 2, which is no wrong usage.
func (e *WorkerError) exitCode() int {
	if e.Signal != nil {
		return exitPeer
	}
	switch e.Code {
	case exitUsage:
		for _, line := range e.LastLines {
			if Crashed(line) {
				return exitFailed
			}
		}
		return exitUsage
	case exitFailed, exitPeer, exitInterrupted:
		return e.Code
	}
	return exitFailed
}
