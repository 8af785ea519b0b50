package launch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// A worker's last words may have the picture of a pipeline below them, with a
	// line for each of its ranks.
	tailLines = 150
	tailBytes = 64 << 10
	// crashLines are kept from the beginning of a crash.
	crashLines = 12
	// crashBytes is where the beginning of a crash is looked for, which prints
	// the stacks of all goroutines behind it.
	crashBytes = 4 << 20
)

// log is the file with one worker's output.
type log struct {
	file  *os.File
	name  string // "" when the file is anonymous
	start int64  // where this run's output begins
}

// openLog appends to the rank's file in dir, or to one without a name when dir
// is empty.
func openLog(dir string, rank int) (*log, error) {
	if dir == "" {
		file, err := os.CreateTemp("", "gradfusion-rank-*")
		if err != nil {
			return nil, fmt.Errorf("launch: log of rank %d: %w", rank, err)
		}
		_ = os.Remove(file.Name())
		return &log{file: file}, nil
	}
	name := filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("launch: log of rank %d: %w", rank, err)
	}
	about, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("launch: log of rank %d: %w", rank, err)
	}
	return &log{file: file, name: name, start: about.Size()}, nil
}

// tee writes to all that are left of its writers and drops one that fails. It
// never fails itself: a full disk or a closed terminal must not close the pipe
// of a worker, which would die of it.
type tee []io.Writer

func (t *tee) Write(b []byte) (int, error) {
	working := (*t)[:0]
	for _, w := range *t {
		if n, err := w.Write(b); err == nil && n == len(b) {
			working = append(working, w)
		}
	}
	*t = working
	return len(b), nil
}

// Crashed reports whether the Go runtime printed this line on ending a program.
func Crashed(line string) bool {
	for _, beginning := range []string{"panic: ", "fatal error: ", "SIGSEGV: ", "SIGBUS: ", "SIGFPE: ", "SIGILL: ", "SIGQUIT: ", "SIGABRT: "} {
		if strings.HasPrefix(line, beginning) {
			return true
		}
	}
	return false
}

// lastLines reads the end of this run's output; of a crash, its first lines.
func (l *log) lastLines() []string {
	about, err := l.file.Stat()
	if err != nil {
		return nil
	}
	all := l.tail(about.Size(), crashBytes)
	for i, line := range all {
		if Crashed(line) {
			return all[i:min(len(all), i+crashLines)]
		}
	}
	lines := l.tail(about.Size(), tailBytes)
	return lines[max(0, len(lines)-tailLines):]
}

// tail returns the whole lines among this run's last most bytes.
func (l *log) tail(size, most int64) []string {
	from := max(l.start, size-most)
	b := make([]byte, size-from)
	n, _ := l.file.ReadAt(b, from)
	text := strings.TrimRight(strings.ToValidUTF8(string(b[:n]), "?"), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if from > l.start && len(lines) > 1 {
		lines = lines[1:] // its beginning is cut off
	}
	return lines
}
