// Package aclnn computes with the operators of Ascend devices (libopapi of CANN):
// products of matrices, sums of two vectors, conversions, and sums over rows and
// channels. A Device is another device.Device, of the host, of which it keeps the
// memory and all other kernels.
//
// It is a first proof that computation can move to such a device, and no more: each
// kernel copies its operands through pinned memory to the device and its result
// back, and waits for that. Whoever has a CPU is faster without it.
//
// The caller opens the ascend.Device, which collective/hccl may share, and closes it
// after this one. The package is behind the build tag ascend, without which New
// returns ascend.ErrNotBuilt. Nothing here has met a device: it is tested with the
// simulated libraries of internal/ascendsim.
//
// An operator has two phases: the first says how much workspace it wants and makes
// an executor, which the second puts on a stream, once. Tensors, which only describe
// memory, and workspace live until the stream has passed it.
//
// A failing device ends a kernel with a panic of *device.FailureError, as kernels
// return nothing; package nn makes an error of it. The Device is dead then.
package aclnn
