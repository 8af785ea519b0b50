package checkpoint

import (
	"bufio"
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

// Write writes the state after step steps to dir, which it makes if need be,
// and returns the file's path. The file appears under its name whole and safe
// on disk, replacing one of the same step; when anything fails, it does not
// appear and nothing else is left. Leftovers of writes that were interrupted
// earlier are removed, so dir must have one writer at a time. The tensors are
// stored larger elements first, by name within a size, so that each is aligned.
func Write(dir string, step int, state State) (string, error) {
	if step < 0 {
		return "", fmt.Errorf("checkpoint: step %d", step)
	}
	if err := state.check(); err != nil {
		return "", fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	state.Tensors = slices.Clone(state.Tensors)
	slices.SortFunc(state.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.Type.Size(), a.Type.Size()), cmp.Compare(a.Name, b.Name))
	})
	path, err := publish(dir, fileName(step), state.write)
	if err != nil {
		return "", fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	return path, nil
}

// Prepare makes dir if need be and finds out whether Write can write there.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	f, err := os.CreateTemp(dir, temporaryStart+"*"+temporaryEnd)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// write writes the file's bytes, the checksum last.
func (s *State) write(f target) error {
	header, err := s.header()
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	if _, err := out.Write(header); err != nil {
		return err
	}
	for i := range s.Tensors {
		if _, err := out.Write(s.Tensors[i].Data); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(hex.EncodeToString(sum.Sum(nil))), int64(checksumAt))
	return err
}

// target is what of a file the content needs.
type target interface {
	io.Writer
	io.WriterAt
}

// publish makes dir/name with the content that fill writes: into a temporary
// file beside it, to disk, and then under its name.
func publish(dir, name string, fill func(target) error) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := clean(dir); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, temporaryStart+"*"+temporaryEnd)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close() // an error of the second Close does not matter
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	for _, do := range []func() error{
		func() error { return fill(f) },
		func() error { return f.Chmod(0o644) },
		f.Sync,
		f.Close,
	} {
		if err := do(); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, name)
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	return path, syncDirectory(dir)
}

// syncDirectory makes a new name in dir survive a crash.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
