//go:build !amd64 && !arm64

package cpu

// fastKernels returns no set: there is assembly for amd64 and arm64 only.
func fastKernels() []candidate { return nil }
