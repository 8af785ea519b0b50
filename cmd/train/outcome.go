package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer"
)

// told is an error whose text is complete and in lines already.
type told struct {
	text string
	code int
}

func (e *told) Error() string { return e.text }

// isLastWord reports whether a line begins what a worker writes last: our
// paragraph, or the runtime's.
func isLastWord(line string) bool { return strings.HasPrefix(line, "train: ") || launch.Crashed(line) }

// holder passes rank 0's lines on until its last words, which it keeps: the
// launcher knows better which rank is to blame.
type holder struct {
	out io.Writer

	mu      sync.Mutex
	partial []byte
	kept    []byte
	holding bool
}

// Write passes on whole lines.
func (h *holder) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.partial = append(h.partial, b...)
	for {
		end := bytes.IndexByte(h.partial, '\n')
		if end < 0 {
			return len(b), nil
		}
		line := h.partial[:end+1]
		h.holding = h.holding || isLastWord(string(line))
		if h.holding {
			h.kept = append(h.kept, line...)
		} else if _, err := h.out.Write(line); err != nil {
			return 0, err
		}
		h.partial = h.partial[end+1:]
	}
}

// rest returns what was kept.
func (h *holder) rest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.kept) + string(h.partial)
}

// ended puts the end of a training's workers into words.
func (j *job) ended(code int, err error, rankZero string) error {
	if errors.Is(err, launch.ErrInterrupted) {
		return j.stopped(trainer.ErrStopped)
	}
	return workersEnded(code, err, rankZero)
}

// workersEnded puts the end of launched workers into one paragraph. rankZero is
// what that rank wrote last.
func workersEnded(code int, err error, rankZero string) error {
	var failure *launch.WorkerError
	switch {
	case err == nil && code == exitDone:
		return nil
	case !errors.As(err, &failure):
		return err
	}
	rank := fmt.Sprintf("rank %d of %d", failure.Rank, failure.Count)
	if failure.Signal != nil {
		text := fmt.Sprintf("train: %s was killed by a signal (%v)%s", rank, failure.Signal, inFile(failure.Log))
		witness, saw := 0, rankZero
		if !strings.HasPrefix(saw, "train: ") {
			witness, saw = failure.Witness, lastOf(failure.WitnessLines)
		}
		if witness != failure.Rank && strings.HasPrefix(saw, "train: ") {
			text += fmt.Sprintf(". What rank %d saw of it: %s", witness, strings.TrimPrefix(saw, "train: "))
		}
		return &told{wrapAbove(text), code}
	}
	words := rankZero
	if failure.Rank != 0 {
		words = lastOf(failure.LastLines)
	}
	switch {
	case words == "":
		return &told{wrap(fmt.Sprintf("train: %s failed with exit code %d and said nothing%s", rank, failure.Code, inFile(failure.Log)), width), code}
	case strings.HasPrefix(words, "fatal error: ") && strings.Contains(words, "out of memory"):
		return &told{wrap(fmt.Sprintf("train: %s ran out of memory%s; smaller micro-batches (train.micro_batch) or a smaller model need less", rank, inFile(failure.Log)), width), exitFailed}
	case !strings.HasPrefix(words, "train: "):
		first, _, _ := strings.Cut(words, "\n")
		return &told{paragraph(&bug{what: rank + " ended with \"" + first + "\"" + inFile(failure.Log)}), exitFailed}
	case failure.Rank != 0 && code != exitUsage && words != rankZero:
		words = wrapAbove("train: " + rank + ": " + strings.TrimPrefix(words, "train: "))
	}
	return &told{words, code}
}

func inFile(log string) string {
	if log == "" {
		return ""
	}
	return " (its output is in " + log + ")"
}

// lastOf finds the last words among a worker's last lines.
func lastOf(lines []string) string {
	for i, line := range lines {
		if isLastWord(line) {
			return strings.Join(lines[i:], "\n") + "\n"
		}
	}
	return ""
}

// stopped says what became of a job that was asked to end.
func (j *job) stopped(err error) error {
	switch {
	case !errors.Is(err, trainer.ErrStopped):
		return err
	case j.config.Checkpoint.Dir == "":
		return &told{wrap("train: interrupted; nothing was saved, as checkpoint.dir is not set", width), exitInterrupted}
	}
	if saved, err := checkpoint.List(j.config.Checkpoint.Dir); err == nil && len(saved) == 0 {
		return &told{wrap("train: interrupted before there was anything to save", width), exitInterrupted}
	}
	return &told{wrap("train: interrupted after a step; -resume goes on from the checkpoint in "+j.config.Checkpoint.Dir, width), exitInterrupted}
}
