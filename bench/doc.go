// Package bench measures collective operations over any Comm, and how well a
// training scales. "train bench" is made of it.
//
// Run is called by every rank of a Comm with the same Config. For each
// operation, type, size, and algorithm or wire format it checks the result
// against the exact answer, warms up, and repeats the call for a while:
//
//   - An iteration takes as long as its slowest rank: the ranks' times are
//     compared call by call, and what is reported is the median and the best of
//     these maxima.
//   - Calls above 128 KiB each begin after a barrier, which is not counted.
//     Smaller ones follow each other, as their own synchronisation is what is
//     to be measured.
//   - The timed calls work on zeros, so that sums do not grow out of their
//     type. Before and after them a call with small integers, exact in every
//     type, is compared with its answer: every element on every rank. That the
//     zeros are still zeros is checked too. Wire formats, whose time depends on
//     the values, are timed on numbers like gradients and checked within their
//     error.
//   - Operations work in place on memory from Comm.Alloc unless Config.Private
//     asks for ordinary memory.
//
// SendReceive, which is no collective operation, has every rank send to the
// next one and receive from the one before, at the same time.
//
// Table, WriteSVG and WriteTerminal show results: with the line
// time = latency + bytes / bandwidth that fits them best, its knee (the size at
// which both terms are equal), and the sizes at which one algorithm overtakes
// another. Scale measures a training at several numbers of ranks.
//
// What is left out: making the Comm (cmd/train does, for benchmarks and
// trainings alike), and everything that reads flags or starts processes.
package bench
