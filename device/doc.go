// Package device is memory and arithmetic: flat typed buffers, the arenas that
// they come from, and the Kernels interface that every device implements. An
// Arena cuts its buffers from a few large regions, which end with their device.
//
// A caller takes buffers from a Device (or wraps its own slices with FromF32
// and its sisters), describes an operation with a small descriptor and hands
// both to Kernels. Kernels are enqueued in order; on the CPU devices a call
// returns when the work is done, on an accelerator it returns at once and Sync,
// Record and After order it against other work.
//
// What a kernel writes never depends on how many threads computed it: work is
// split over outputs, sums run in an order that depends on the shape only.
//
// The package leaves out what the buffers mean (package nn) and how they
// travel (package collective). Implementations: device/naive (plain loops, the
// oracle), device/cpu (vector assembly with a portable fallback) and
// device/extblas (another library's products, to compare). All pass
// device/devicetest. device/ascend is the runtime that collective/hccl communicates
// by; device/ascend/aclnn computes with it, a few kernels of another device's.
package device
