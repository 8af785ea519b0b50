package checkpoint

import (
	"errors"
	"fmt"
	"os"
)

// Write writes the state after step steps to dir, which it makes if need be,
// and returns the file's path. The file appears under its name whole and safe
// on disk, replacing one of the same step; when anything fails, it does not
// appear and nothing else is left. Leftovers of writes that were interrupted
// earlier are removed, so dir must have one writer at a time. The tensors are
// stored larger elements first, by name within a size, so that each is aligned.
func Write(dir string, step int, state State) (string, error) {
	if err := state.complete(); err != nil {
		return "", fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	w, err := Create(dir, step, state)
	if err != nil {
		return "", err
	}
	for i := range state.Tensors {
		if err := w.Put(state.Tensors[i].Name, state.Tensors[i].Data); err != nil {
			return "", errors.Join(err, w.Abort())
		}
	}
	return w.Commit()
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
