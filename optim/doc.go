// Package optim holds optimizers, which update flat segments of parameters in
// one pass, learning-rate schedules, parameter groups and the norm that
// clipping needs. It knows nothing of ranks: package parallel hands it summed
// gradients.
//
// The caller makes an Optimizer with New, hands the segments that this rank
// owns to Init, and calls Update once a step with the rate that a Schedule
// gives. An element's new value depends on that element alone, so cutting a
// parameter into segments, on one rank or over several, changes no bit; Norm
// sums in one canonical tree, so neither does clipping.
//
// A table of which a step looks up few rows may have a sparse gradient: see
// Segment.Rows. The exact form, which is the default, gives the bits of the dense
// gradient: momentum, moments and decay act on all rows, so that an optimizer
// passes over all of them, unless a zero gradient changes nothing, as with plain
// SGD and AdaGrad without decay, which pass over the given rows only. The lazy form,
// Config.Lazy, passes over the given rows only with any optimizer: other rows keep
// weights and state, as in PyTorch's SparseAdam; bias correction counts all steps.
//
// The package leaves out which rank owns which segment, mixed precision, and
// whether a step is to be taken at all.
package optim
