package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Replace gives a file its content in one go, by a temporary file beside it that
// takes its name: whatever fails, a full disk too, leaves the old file, or none,
// and nothing else. A new file may be read by all whom the umask lets, an old one
// by whom it was before. What is no regular file, such as /dev/stdout, is written
// to; a link to a file stays, and the file is replaced.
func Replace(path string, content []byte) (err error) {
	switch target, err := filepath.EvalSymlinks(path); {
	case err == nil:
		path = target
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	mode := fs.FileMode(0)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return os.WriteFile(path, content, 0)
		}
		mode = info.Mode().Perm()
	}
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%x", filepath.Base(path), rand.Uint64()))
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(temporary)
		}
	}()
	if _, err = file.Write(content); err != nil {
		return err
	}
	if mode != 0 {
		if err = file.Chmod(mode); err != nil {
			return err
		}
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
