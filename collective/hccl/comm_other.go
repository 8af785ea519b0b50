//go:build !ascend || !linux || (!amd64 && !arm64)

package hccl

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// New refuses: this binary cannot load libraries.
func New(context.Context, Config) (collective.Comm, error) { return nil, ascend.ErrNotBuilt }
