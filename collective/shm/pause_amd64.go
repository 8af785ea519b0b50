//go:build linux

package shm

// pause waits for about 30 ns per n, leaving the processor's resources to others.
//
//go:noescape
func pause(n uint32)
