//go:build !extblas || (!linux && !darwin)

package extblas

import (
	"errors"
	"fmt"
	"runtime"
)

// load refuses: this binary cannot load libraries.
func load(name, _ string, _ int) (library, error) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return library{}, fmt.Errorf("%s is for Linux and macOS", name)
	}
	return library{}, errors.New("this binary cannot load " + name + "; build one that can: go build -tags extblas -o bin/train ./cmd/train")
}
