// Package nn holds what networks are made of: parameters, the tape that
// records a forward pass and runs its backward pass in two halves, operations,
// layers, and blocks, the unit between which a pipeline may cut.
//
// A forward pass takes a Tape, which owns every activation; Tape.Backward runs
// the recorded operations in reverse, writes each parameter's gradient into the
// slot that its owner bound (parallel.GradFusion binds views of its buckets)
// and calls the parameter's OnGrad hooks at once, so that communication may
// start while earlier layers still compute. With Pass.Recompute the tape keeps
// what goes from block to block only, and runs each block again before its
// backward pass. Pass.Precision says which values have 16 bits; masters are
// float32. A table's gradient may be kept by rows (Param.Sparse).
//
// The package knows nothing of ranks, but that a layer may be cut over Partners,
// each of which holds a part of its parameters (tensor parallelism), and that a
// BatchNorm may take its statistics Across them. Shape mistakes panic with an
// *Error, which Catch turns into an error at the boundary of a stage.
package nn
