package metrics

import (
	"os"
	"path/filepath"
)

// Replace gives a file its content in one go, by a temporary file beside it that
// takes its name: whatever fails, a full disk too, leaves the old file, or none,
// and nothing else. What is no regular file, such as /dev/stdout, is written to.
func Replace(path string, content []byte) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, content, 0)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if _, err = file.Write(content); err != nil {
		return err
	}
	if err = file.Chmod(0o644); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
