//go:build !ascend || !linux || (!amd64 && !arm64)

package trainer_test

import (
	"context"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
)

// acceleratorNames lists the backends beside the CPU's that combinations are drawn
// for: none in this binary.
func acceleratorNames() []string { return nil }

func acceleratorWorld(t *testing.T, _ int, _ func(context.Context, collective.Comm) error) {
	t.Fatal("this binary has no accelerators")
}
