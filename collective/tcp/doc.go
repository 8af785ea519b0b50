// Package tcp is the transport between processes over TCP: one socket per pair
// of ranks, IPv4 or IPv6.
//
// Every rank listens, publishes its address in the rendezvous store and connects
// to the ranks below its own, so each pair has one dialer. Both ends prove the
// job's token first; strangers on the port are turned away and reported to
// Config.Refused.
//
// Messages up to 64 KiB are sent at once (eager) and wait at the receiver in
// pooled buffers, at most 64 MiB per pair and direction; beyond that, and for larger
// messages, the sender announces the message, the receiver grants it when a matching Recv
// is posted, and the bytes stream into the receiver's buffer without a copy:
//
//	eager:  Send --- Eager tag, bytes ------------------------> Recv
//	large:  Send --- Announce tag, size ----------------------> Recv
//	             <-- Grant ------------------------------------
//	             --- Data up to 1 MiB, Data, ... ------------->
//
// One goroutine per peer reads and never waits for anything but the socket; one
// per peer writes what a caller could not write without blocking. Frames of
// different messages interleave, so a grant waits for one frame at most and
// ranks that all send large messages to one another make progress.
//
// Cancelling a call never spoils the stream. A cancelled Recv that had been
// matched consumes its message, unseen. A cancelled Send that had begun makes
// the matching Recv fail with a *collective.LinkError, and the link lives on.
//
// A rank that ends without Close fails every pending and later call of all its
// peers. One that closes is only missed by calls that need it: they say that it
// has left. Messages that it sent before can still be received.
//
// Left out: encryption, several sockets per peer, resuming a broken stream.
package tcp
