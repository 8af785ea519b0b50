// Package schedule says what each rank of a pipeline does in one optimizer step
// and in which order, as data: a list of actions per rank. It imports only the
// standard library, moves no byte and starts no goroutine; package parallel's
// executor runs the lists. Data parallelism and gradient accumulation are
// schedules of one stage, so a training step has one path.
//
// A generator such as OneStage, GPipe or OneForwardOneBackward makes a
// Schedule, New makes one by its name, or ReadCSV reads a user's own. Check proves
// it complete and free of deadlock, Simulate tells span, idle time and memory for
// given costs, Grid draws it, and Lower adds the sends and receives that an
// executor needs.
package schedule
