// Package inproc connects ranks that are goroutines of one process. It is the
// transport of tests, of `-nproc N` with transport inproc, and of notebooks.
//
// A message is copied once, straight from the sender's memory to the receiver's
// when both are there; a small message whose receiver is late is kept, a large
// one waits in the sender's memory, and RecvInPlace lends it from there.
//
// The caller makes all ranks with New, gives one to each goroutine and closes
// each. What one rank sent before it closed can still be received; a receive
// that would wait for a closed rank gets a *collective.LinkError.
//
// NewOn has the ranks count as those of several hosts, for what depends on that. It
// starts no goroutines and leaves out faults and registered memory.
package inproc
