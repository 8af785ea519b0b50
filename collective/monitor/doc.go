// Package monitor watches the ranks of a job beside their transport, over a
// connection to the rendezvous store that stays open for the run.
//
// It finds what no message of a call can tell: a rank whose process has ended
// (every Group that the rank is in fails at once), a rank that is stopped, frozen
// or cut off (it is reported at once and blamed when a call times out; it may
// come back before that), and a call that waits for long. Of the last it makes a
// report: which ranks wait, which are missing, what those are in instead, and,
// asked for over the store, what their goroutines do.
//
//	m, err := monitor.Start(ctx, monitor.Config{Rank: rank, Size: size, Store: client, Namespace: job, On: show})
//	defer m.Close()
//	g := collective.NewGroup(transport, collective.GroupConfig{Monitor: m})
//	defer g.Close()
//
// # What the caller must do
//
// Start a Monitor on all ranks of a transport with the same settings, before the
// Groups; close the Groups, then the Monitor, then the store's client.
//
// # How
//
// Every heartbeat a rank sets one key of the store to a number that grows and to
// the calls that it is in. Rank 0, where the store is, reads all of them and
// tells everybody what it makes of them; the others watch rank 0. That is two
// small messages per rank and beat, whatever the number of ranks. A will tells
// of a death the moment its connection breaks, a pidfd of one on the same host.
//
// # What is left out
//
// Replacing a rank that was lost is the job's work.
package monitor
