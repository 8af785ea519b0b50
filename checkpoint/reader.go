package checkpoint

import (
	"errors"
	"fmt"
	"os"
)

// Reader reads single tensors of a checkpoint. The file stays the same for it,
// also when it is replaced or removed. Any number of goroutines may use it.
type Reader struct {
	// Metadata is what the file has beside tensors.
	Metadata map[string]string
	// Tensors have no Data; they come in the order of their bytes.
	Tensors []Tensor
	// Checksum is what the file says of itself, empty in foreign ones. Two files
	// with the same one have the same content, as far as they are not damaged.
	Checksum string

	file   *os.File
	starts map[string]int64
	sizes  map[string]int
}

// Open opens a checkpoint. It reads the header only, so whoever does not know the
// file to be good calls Verify first.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	r := &Reader{file: f, starts: map[string]int64{}, sizes: map[string]int{}}
	if err := r.index(); err != nil {
		f.Close() // nothing was written
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) index() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a file")
	}
	from := &file{reader: r.file, size: info.Size()}
	state, entries, err := from.header()
	if err != nil {
		return err
	}
	r.Metadata, r.Tensors = state.Metadata, state.Tensors
	for _, e := range entries {
		r.starts[e.tensor.Name] = int64(len(from.start)) + int64(e.start)
		r.sizes[e.tensor.Name] = int(e.end - e.start)
	}
	if claimed, err := from.checksum(); err == nil {
		r.Checksum = claimed
	}
	return nil
}

// Size returns the bytes of a tensor, and whether there is one of that name.
func (r *Reader) Size(name string) (int, bool) {
	n, ok := r.sizes[name]
	return n, ok
}

// Read fills b with the bytes of a tensor, which must be as many.
func (r *Reader) Read(name string, b []byte) error {
	n, ok := r.sizes[name]
	if !ok || n != len(b) {
		return fmt.Errorf("checkpoint: %s: tensor %s has %d bytes, not %d", r.file.Name(), name, n, len(b))
	}
	if n == 0 {
		return nil
	}
	if _, err := r.file.ReadAt(b, r.starts[name]); err != nil {
		return fmt.Errorf("checkpoint: %s: tensor %s: %w", r.file.Name(), name, err)
	}
	return nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
