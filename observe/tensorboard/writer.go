package tensorboard

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	flushInterval = 5 * time.Second // as often as TensorBoard looks for news
	flushBytes    = 64 << 10
	namePrefix    = "events.out.tfevents."
)

// Writer appends scalars to one event file. It buffers them and writes them
// out 5 seconds late at most, checked when a scalar comes (it has no
// goroutine), and at Flush and Close. Not for concurrent use.
type Writer struct {
	file    *os.File
	table   *crc32.Table
	buffer  []byte
	started bool // the session start, which needs the first step, is written
	flushed time.Time
	err     error // the first failure, which every later call returns
}

// Open begins a new event file in dir, which it makes when there is none:
// events.out.tfevents.SECONDS.HOST.PID.0. SECONDS are those of start in Unix
// time, or later ones when dir holds files that would not sort before it:
// readers go by name, and what came last must be read last.
func Open(dir string, start time.Time) (*Writer, error) {
	file, err := create(dir, start)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	w := &Writer{file: file, table: crc32.MakeTable(crc32.Castagnoli), buffer: make([]byte, 0, 2*flushBytes)}
	w.buffer = endRecord(appendVersion(beginRecord(w.buffer), start), 0, w.table)
	if err := w.Flush(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

func create(dir string, start time.Time) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	seconds, err := newest(dir)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // the name is for people; it need not be right
	}
	name := fmt.Sprintf("%s%010d.%s.%d.0", namePrefix, max(start.Unix(), seconds+1), host, os.Getpid())
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

// newest returns the largest SECONDS of dir's event files, -1 without any.
func newest(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	last := int64(-1)
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), namePrefix)
		digits, _, _ := strings.Cut(rest, ".")
		seconds, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && len(digits) == 10 { // other lengths sort elsewhere
			last = max(last, seconds)
		}
	}
	return last, nil
}

// Scalar takes the value that tag has at step; slashes in a tag make groups,
// and what is not UTF-8 in it is replaced. The file keeps float32. Values that
// are not finite are written as they are. The first call also fixes the step
// from which older files of the folder no longer count: it must be the run's
// first step. It allocates nothing in the steady state.
func (w *Writer) Scalar(step int64, tag string, value float64) error {
	if w.err != nil {
		return w.err
	}
	now := time.Now()
	if !w.started {
		w.started = true
		start := len(w.buffer)
		w.buffer = endRecord(appendStart(beginRecord(w.buffer), now, step), start, w.table)
	}
	start := len(w.buffer)
	w.buffer = appendScalar(beginRecord(w.buffer), now, step, strings.ToValidUTF8(tag, "\uFFFD"), value)
	w.buffer = endRecord(w.buffer, start, w.table)
	if now.Sub(w.flushed) < flushInterval && len(w.buffer) < flushBytes {
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
		w.err = fmt.Errorf("tensorboard: %w", err) // names the file already
	}
	w.buffer = w.buffer[:0]
	return w.err
}

// Close flushes and closes the file.
func (w *Writer) Close() error {
	err := w.Flush()
	if failed := w.file.Close(); err == nil && failed != nil {
		err = fmt.Errorf("tensorboard: %w", failed)
		w.err = err
	}
	return err
}
