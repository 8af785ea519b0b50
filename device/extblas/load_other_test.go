//go:build !extblas && (linux || darwin)

package extblas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutTheTagTheCommandIsGiven(t *testing.T) {
	for _, name := range Libraries() {
		_, err := New(Config{Library: name})
		require.EqualError(t, err, "this binary cannot load "+name+"; build one that can: go build -tags extblas -o bin/train ./cmd/train")
	}
}
