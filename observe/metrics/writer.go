package metrics

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Writer appends lines to metrics.jsonl. It buffers them and writes them out
// at most one interval late (checked when a line comes: it has no goroutine),
// and at Close. Not for concurrent use.
type Writer struct {
	file    *os.File
	buffer  []byte
	every   time.Duration
	flushed time.Time
	err     error // the first failure, which every later call returns
}

// Open opens path for the lines from step first on. Lines of earlier steps,
// left by the run that is resumed, are kept; later ones and torn ones go. An
// interval of 0 writes each line at once.
func Open(path string, first int, every time.Duration) (*Writer, error) {
	kept, err := keep(path, first)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := Replace(path, kept); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Writer{file: file, every: every, flushed: time.Now()}, nil
}

// keep returns the lines of steps before first, none when there is no file.
func keep(path string, first int) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var kept []byte
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct{ Step *int }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Step != nil && *line.Step < first {
			kept = append(append(kept, lines.Bytes()...), '\n')
		}
	}
	return kept, lines.Err()
}

// Write takes one line. It allocates nothing in the steady state.
func (w *Writer) Write(l Line) error {
	if w.err != nil {
		return w.err
	}
	w.buffer = l.append(w.buffer)
	if time.Since(w.flushed) < w.every && len(w.buffer) < 1<<20 {
		return nil
	}
	return w.Flush()
}

// Flush writes out what is buffered.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	w.flushed = time.Now()
	if _, err := w.file.Write(w.buffer); err != nil {
		w.err = fmt.Errorf("metrics: %w", err)
	}
	w.buffer = w.buffer[:0]
	return w.err
}

// Close flushes and closes the file.
func (w *Writer) Close() error {
	err := w.Flush()
	if failed := w.file.Close(); err == nil && failed != nil {
		err = fmt.Errorf("metrics: %w", failed)
		w.err = err
	}
	return err
}
