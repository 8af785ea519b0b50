package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Writer writes a checkpoint tensor by tensor, so that nobody needs memory for
// all of it. It has to be ended by Commit or Abort. One goroutine uses it at a
// time.
type Writer struct {
	dir    string
	step   int
	file   *os.File
	places map[string]place
	left   int // tensors that are still to come
}

// place is where a tensor's bytes go.
type place struct {
	start, size int64
	filled      bool
}

// Create starts the checkpoint after step steps in dir, which it makes if need
// be. layout has the metadata, and of the tensors all but Data, which is not
// looked at. Leftovers of writes that were interrupted earlier are removed, so dir
// must have one writer at a time.
func Create(dir string, step int, layout State) (*Writer, error) {
	w := &Writer{dir: dir, step: step, places: map[string]place{}, left: len(layout.Tensors)}
	if step < 0 {
		return nil, fmt.Errorf("checkpoint: step %d", step)
	}
	if err := w.start(layout); err != nil {
		return nil, w.fault(err)
	}
	return w, nil
}

func (w *Writer) fault(err error) error {
	return fmt.Errorf("checkpoint of step %d: %w", w.step, err)
}

func (w *Writer) start(layout State) (err error) {
	if err := layout.check(); err != nil {
		return err
	}
	layout.Tensors = slices.Clone(layout.Tensors)
	slices.SortFunc(layout.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.Type.Size(), a.Type.Size()), cmp.Compare(a.Name, b.Name))
	})
	header, err := layout.header()
	if err != nil {
		return err
	}
	at := int64(len(header))
	for _, t := range layout.Tensors {
		size, _ := bytesOf(t.Type, t.Shape)
		w.places[t.Name] = place{start: at, size: int64(size)}
		at += int64(size)
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	if err := clean(w.dir); err != nil {
		return err
	}
	if w.file, err = os.CreateTemp(w.dir, temporaryStart+"*"+temporaryEnd); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(header, 0); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

// Put writes a tensor's bytes, each tensor once and in any order. After an error
// what remains is Abort.
func (w *Writer) Put(name string, data []byte) error {
	p, known := w.places[name]
	switch {
	case !known:
		return w.fault(fmt.Errorf("tensor %s was not announced", name))
	case p.filled:
		return w.fault(fmt.Errorf("tensor %s comes twice", name))
	case int64(len(data)) != p.size:
		return w.fault(fmt.Errorf("tensor %s: %d bytes, %d were announced", name, len(data), p.size))
	}
	if _, err := w.file.WriteAt(data, p.start); err != nil {
		return w.fault(err)
	}
	p.filled = true
	w.places[name] = p
	w.left--
	return nil
}

// Commit publishes the file, whole and safe on disk, replacing one of the same
// step, and returns its path; when anything fails, nothing is left. It reads the
// file back for its checksum, and may run beside whatever has filled it.
func (w *Writer) Commit() (path string, err error) {
	path = filepath.Join(w.dir, fileName(w.step))
	for _, do := range []func() error{
		w.complete,
		w.seal,
		func() error { return w.file.Chmod(0o644) },
		w.file.Sync,
		w.file.Close,
		func() error { return os.Rename(w.file.Name(), path) },
	} {
		if err := do(); err != nil {
			return "", w.fault(errors.Join(err, w.Abort()))
		}
	}
	if err := syncDirectory(w.dir); err != nil {
		return "", w.fault(err)
	}
	return path, nil
}

func (w *Writer) complete() error {
	if w.left > 0 {
		return fmt.Errorf("%d tensors that were announced did not come", w.left)
	}
	return nil
}

// seal writes the checksum, in whose place there are zeros.
func (w *Writer) seal() error {
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{sum}, onlyReader{w.file}, make([]byte, 1<<18)); err != nil {
		return err
	}
	_, err := w.file.WriteAt([]byte(hex.EncodeToString(sum.Sum(nil))), int64(checksumAt))
	return err
}

// These keep io.CopyBuffer to its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// Abort takes back what was written.
func (w *Writer) Abort() error {
	w.file.Close() // it may be closed, and an error does not matter
	return ignoreMissing(os.Remove(w.file.Name()))
}
