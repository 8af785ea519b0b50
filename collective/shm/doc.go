// Package shm is the transport between processes of one host, over memory that
// they share and that vanishes with the last of them. It is for Linux; elsewhere
// Join says that it is not available.
//
// Rank 0 makes one anonymous memory file (memfd) and serves it on an abstract
// unix socket whose name it publishes in the rendezvous store. The others
// connect, prove the job's token, hand over a descriptor of their own process
// and one by which they can be woken, and receive everybody's with the memory.
// That a rank can connect is what "same host" means. Join succeeds on all ranks
// or on none.
//
// # Messages
//
// Each ordered pair of ranks has a ring of frames in the memory. Messages up to
// 64 KiB are written at once; what finds the ring full waits in the sender's
// memory. Larger ones are announced, and stream through the ring when a receive
// asks for them:
//
//	eager:  Send --- Eager tag, bytes ------------------------> Recv
//	large:  Send --- Announce tag, size ----------------------> Recv
//	             <-- Grant ------------------------------------
//	             --- Data, Data, ... ------------------------->
//
// Whoever waits looks at the rings itself for some microseconds; then it sleeps,
// and a goroutine that the peers wake through an eventfd takes over.
//
// # Whole calls
//
// Transport.Direct gives a group what it needs to run calls without messages:
// buckets that all ranks map (collective.Comm.Alloc), reductions in which each
// rank reads its slice of all buffers and writes the result into all, staging
// windows for private memory, and one synchronisation in all for small calls.
// Sums are taken in rank order, so all ranks get the same bits whatever slices
// the ranks took.
//
// # Failures
//
// Each rank holds a descriptor of every peer's process and learns of its death
// within a millisecond; all pending and later calls then return a
// *collective.LinkError. A stopped process is not dead: calls that need it run
// into the group's time-out.
//
// # What the caller must do
//
// Close the groups, then the transport, when nobody uses memory from
// Comm.Alloc any more: Close unmaps it.
//
// Left out: hosts other than this one, and processes with other process
// name spaces for which the kernel hands out no descriptors.
package shm
