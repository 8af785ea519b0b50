//go:build linux

package shm

import "unsafe"

// pause waits for some ns per n, leaving the processor's resources to others.
//
//go:noescape
func pause(n uint32)

// preload begins to fetch n bytes for reading, and claim for writing.
//
//go:noescape
func preload(b unsafe.Pointer, n int)

//go:noescape
func claim(b unsafe.Pointer, n int)
