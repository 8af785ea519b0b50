// Package tcp is the transport between processes over TCP, IPv4 or IPv6: one
// socket per pair of ranks, or several over which large messages are striped.
//
// Every rank listens, publishes its address in the rendezvous store and connects
// to the ranks below its own, so each pair has one dialer. Both ends prove the
// job's token first, over an encrypted channel where Config.TLS asks for one;
// strangers on the port cost a place for some seconds, are turned away and
// reported to Config.Refused.
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
//	             <-- Done -------------------------------------
//
// One goroutine per socket reads and never waits for anything but the socket; one
// writes what a caller could not write without blocking. Frames of different
// messages interleave, so a grant waits for one frame at most and ranks that all
// send large messages to one another make progress. Who waits for a message that
// will come soon reads the socket itself for up to 50 us, which saves waking two
// goroutines; it stops doing so after a few long waits, and does not begin where
// Config.Busy says that this would take time from a computation.
//
// # Broken connections
//
// A sender keeps each frame until the peer has handled it: small ones as they
// are, on a link that is slower than its senders up to the 64 MiB that may wait,
// those of large messages as references to the caller's memory, which is why Send
// of a large message returns when the peer has it. When a connection breaks and Config.Retry allows,
// the rank that dialed dials again, both say how many frames they have handled,
// and each goes on after that one. A peer that no longer listens is dead and
// reported at once. Config.Checksum finds bytes that changed on their way; that
// is an error of the link and not repaired.
//
// # Cancelling and leaving
//
// Cancelling a call never spoils the stream. A cancelled Recv that had been
// matched consumes its message, unseen. A cancelled Send that had begun makes
// the matching Recv fail with a *collective.LinkError, and the link lives on.
//
// A rank that ends without Close fails every pending and later call of all its
// peers. One that closes is only missed by calls that need it: they say that it
// has left. Messages that it sent before can still be received: Close waits for
// them to arrive, unless a second passes in which no peer takes anything, or peers
// take so little that it would not be done within the time-out of a call.
//
// Left out: finding out that a peer is frozen or cut off without a sign, which
// is collective/monitor's part.
package tcp
