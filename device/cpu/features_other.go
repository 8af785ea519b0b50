//go:build !amd64

package cpu

// fastKernels returns no set: assembly exists for amd64 only.
func fastKernels() []candidate { return nil }
