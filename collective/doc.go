// Package collective lets ranks compute together: all-reduce, broadcast and the
// other collective operations, and sends and receives between pairs.
//
// A Transport moves bytes between ranks (packages inproc, tcp, ...). A Group
// makes of it a Comm: it compiles a plan of package plan for each call, executes
// it, and explains what goes wrong.
//
//	g := collective.NewGroup(transport, collective.GroupConfig{})
//	defer g.Close()
//	err := collective.AllReduce(ctx, g, collective.Sum, device.FromF32(gradient))
//
// # What the caller must do
//
// Start the same calls in the same order on all ranks of a Comm; other Comms
// (see Sub and Split) have an order of their own. Leave a call's buffers alone until its
// Work has ended. Wait for every Work, or at least for the last. Close the
// Group, then the transport, when all ranks are done: a Barrier before it makes
// sure.
//
// # Results
//
// All ranks get the same bits. The order of additions follows from the plan,
// hence from kind, size and number of ranks, never from timing. F16 and BF16 are
// summed by one road whatever the algorithm: each rank receives its slice from
// all, adds in float32 in rank order, rounds once, and hands the result out.
// Max and Min of them, which do not round, use plans like the other types. A call
// with a Codec takes a like road with encoded slices.
//
// # Failures
//
// Every message carries the header of its call, so ranks that run different
// calls get a MismatchError that prints both, and never a wrong sum; ranks that
// wait for each other in different calls find out by the notices they exchange
// while they wait. A failed call ends the Group on all ranks: the rank that
// meets the error tells its peers, and all calls return a PeerError.
//
// # What is left out
//
// How ranks find each other (package store and the transports), what a call's
// buffers mean (package parallel), what encoded values look like (package wire).
package collective
