// Package naive is the oracle: every kernel as a plain loop that reads like its
// formula, with nothing clever in it. Use it in tests and to debug a fast
// device; it is about a hundred times slower than device/cpu.
//
// Tensors are float32. Sums (products, convolutions, statistics, gradients of
// parameters) run in float64, in index order, and are rounded once, so that an
// answer is as close to the true one as float32 can hold. Element-wise kernels
// compute in float32, one rounding an operation and never fused, because there
// a fast device is expected to give the same bits.
//
// Kernels run on the caller's goroutine and a Device has no state, so it needs
// no Sync and may be used by any number of goroutines.
package naive
