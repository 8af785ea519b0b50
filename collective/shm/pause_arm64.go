//go:build linux

package shm

// pause waits for some ns per n, leaving the processor's resources to others.
//
//go:noescape
func pause(n uint32)
