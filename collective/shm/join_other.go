//go:build !linux || !(amd64 || arm64)

package shm

import (
	"context"
	"fmt"
	"runtime"

	"github.com/gradfusion/gradfusion/collective"
)

// Transport does not exist on this system.
type Transport struct{ collective.Transport }

// Join returns an error that wraps ErrUnavailable.
func Join(_ context.Context, c Config) (*Transport, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("shm: %s/%s: %w", runtime.GOOS, runtime.GOARCH, ErrUnavailable)
}

// Fail is never called.
func (t *Transport) Fail(*collective.LinkError) bool { return false }
