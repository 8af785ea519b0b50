// Package plan describes collective operations as data. A Plan is a sequence of
// rounds, a Round a set of moves, a Move one message between two ranks. Nothing
// here communicates: package collective executes plans, and this package checks,
// simulates, prices and prints them.
//
// # The vector of a plan
//
// Every rank owns one vector, cut in Plan.Chunks chunks. What the chunks mean
// depends on the Kind:
//
//   - AllReduce, Reduce, Broadcast: the whole vector, in place.
//   - AllGather, ReduceScatter, Gather, Scatter: Chunks is a multiple of Ranks,
//     and rank r owns the r-th run of Chunks/Ranks chunks.
//   - AllToAll: chunks [0, Ranks) are the parts to send, chunk Ranks+i receives
//     rank i's part; chunks from 2*Ranks on are scratch.
//   - Barrier: one chunk, whose content does not matter.
//
// Where the chunks are cut belongs to the call, not to the plan; Cut is the
// default.
//
// # What the caller must do
//
// Take a plan from an Algorithm or build one from moves with Of, compose plans
// with Then, Zip, Union, Shift, OnRanks, OnChunks, OnRuns, Refine and Segment, and
// prove the result with Plan.Check. Composition panics when the numbers of ranks
// or chunks do not fit: that is a programmer's error.
//
// Choose takes the algorithm with the lowest Plan.Cost for a World and its Links;
// a Selection, which ParseSelection reads from a configuration, overrides it.
//
// # What is left out
//
// Types, reductions, memory, transports and failures: package collective. The
// package imports only the standard library.
package plan
