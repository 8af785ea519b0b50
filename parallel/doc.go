// Package parallel trains one model on many ranks. GradFusion fuses gradients
// into buckets, sums each over the ranks while the backward pass goes on, and
// runs the optimizer; Executor runs a schedule of forward and backward actions
// over a rank's blocks.
//
// The unit of everything is the micro-batch: a step of N samples is cut in
// ceil(N / micro-batch) of them, dealt in contiguous runs to the ranks. What a
// step computes does not depend on which rank computed which micro-batch, up to
// rounding; with FusionConfig.Deterministic not even rounding differs.
//
// A caller needs a collective.Comm for each stage, blocks whose parameters have
// memory (nn.Materialize), and an optimizer. It then repeats: for each of
// Micros a forward pass and Backward, Wait, Step.
//
// The package leaves out models cut over ranks (schedules of several stages are
// data in parallel/schedule, which nothing here runs yet), optimizers whose
// state is sharded, and loading data, which the caller does.
package parallel
