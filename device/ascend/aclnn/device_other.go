//go:build !ascend || !linux || (!amd64 && !arm64)

package aclnn

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Device stands for one that computes with operators, which this binary cannot have.
type Device struct{ device.Device }

// New refuses: this binary cannot load libraries.
func New(c Config) (*Device, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return nil, ascend.ErrNotBuilt
}
