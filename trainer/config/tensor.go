package config

import "github.com/gradfusion/gradfusion/data"

// checkTensor finds what does not go with layers that are cut over ranks.
func (c *Config) checkTensor() error {
	n := c.Parallel.Tensor
	if n == 1 {
		return nil
	}
	if err := c.Network(data.Shape{}).Shares(n); err != nil {
		return c.Errorf("parallel.tensor", "parallel.tensor is %d: %v", n, err)
	}
	// The ranks that share a layer hold its other parameters alike. A wire that
	// treats a bucket as a whole would round them by what else is in it, which is
	// different on each.
	if wire := c.Fusion.Wire; wire.Keeps() {
		return c.Errorf("fusion.wire.name", "fusion.wire: %s does not go with parallel.tensor: %d, whose ranks have to round what they hold alike in the same way; "+
			"use f32, f16 or bf16", wire.Name, n)
	}
	return nil
}
