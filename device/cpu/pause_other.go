//go:build !amd64 && !arm64

package cpu

// pause does nothing where no instruction for it is known.
func pause() {}
