package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	nameStart      = "step-"
	nameEnd        = ".safetensors"
	temporaryStart = ".step-"
	temporaryEnd   = ".tmp"
)

func fileName(step int) string { return fmt.Sprintf("%s%08d%s", nameStart, step, nameEnd) }

// stepOf returns the step of a name that fileName makes.
func stepOf(name string) (int, bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, nameStart), nameEnd)
	step, err := strconv.Atoi(digits)
	return step, err == nil && step >= 0 && fileName(step) == name
}

// Entry is one checkpoint of a directory.
type Entry struct {
	Path string
	Step int
}

// List returns the checkpoints in dir, oldest first, by their names alone. A
// directory that does not exist has none.
func List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var out []Entry
	for _, n := range names {
		if step, ok := stepOf(n.Name()); ok {
			out = append(out, Entry{filepath.Join(dir, n.Name()), step})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Step, b.Step) })
	return out, nil
}

// Skipped is a checkpoint that cannot be used, and why.
type Skipped struct {
	Entry
	Err error
}

// Latest returns the newest checkpoint in dir that is good, all of it read and
// checked, and the newer ones that are not, newest first. With no good one the
// entry has no path. The error is about dir itself.
func Latest(dir string) (Entry, []Skipped, error) {
	entries, err := List(dir)
	if err != nil {
		return Entry{}, nil, err
	}
	var skipped []Skipped
	for _, e := range slices.Backward(entries) {
		err := Verify(e.Path)
		if err == nil {
			return e, skipped, nil
		}
		skipped = append(skipped, Skipped{e, err})
	}
	return Entry{}, skipped, nil
}

// Prune removes the oldest checkpoints but for the newest keep (at least 1)
// and those whose paths are protected, and returns what it removed. It does
// not look into the files: call it after a Write, whose file is good.
func Prune(dir string, keep int, protected ...string) (removed []string, err error) {
	if keep < 1 {
		return nil, fmt.Errorf("checkpoint: keep %d: at least one must stay", keep)
	}
	entries, err := List(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries[:max(len(entries)-keep, 0)] {
		if slices.Contains(protected, e.Path) {
			continue
		}
		if err := os.Remove(e.Path); err != nil {
			return removed, fmt.Errorf("checkpoint: %w", err)
		}
		removed = append(removed, e.Path)
	}
	return removed, nil
}

// Forget removes the checkpoints of later steps than step: those of an earlier
// run in dir, or damaged ones that a run has gone back behind. Prune and Latest
// would prefer them to what the present run writes.
func Forget(dir string, step int) error {
	entries, err := List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Step <= step {
			continue
		}
		if err := os.Remove(e.Path); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

// clean removes what interrupted writes left in dir.
func clean(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), temporaryStart) && strings.HasSuffix(n.Name(), temporaryEnd) {
			if err := ignoreMissing(os.Remove(filepath.Join(dir, n.Name()))); err != nil {
				return err
			}
		}
	}
	return nil
}
