// Package hccl is a collective.Comm over the library of Ascend devices for
// communication, HCCL, each rank having a device of its own. It is behind the
// build tag ascend; without it New returns ascend.ErrNotBuilt. Nothing here has
// met a device: the tests run over the simulated libraries of internal/ascendsim.
//
// Ranks meet through a Store: the lowest one publishes HCCL's root info, the
// others join. With a rank table HCCL finds the devices in the file itself.
//
// Buffers are the host's, or the device's (ascend.Device.Alloc): calls of which the host
// does a part refuse those. What is sent of the host's is copied to pinned memory, to
// the device, through the operation and back, by streams of their own that events tie
// together, so that copies of one piece go on beside the operation of another
// and beside what the host computes. Buffers of Comm.Alloc are pinned and save the
// copies on the host.
//
// HCCL reduces some types by some operations only, by chip, has no mean and no
// gather, and parts of several sizes on some chips and hosts only. What it lacks is
// composed of what it has: the mean is a sum divided on the host; a gather is an
// all-to-all of unequal counts; other parts are padded; and reductions that it cannot
// do, or not exactly (16-bit floats, which it would round at every addition), are an
// all-to-all of slices, a fold in float32 in the order of ranks, and an all-gather.
// Config.ReduceHalves leaves 16-bit sums to the device.
//
// A call is watched: it ends with an error when its time is over, when the device
// reports one, or when another rank has failed and said so in the Store. The Comm
// is dead then. HCCL's own limits are HCCL_CONNECT_TIMEOUT and HCCL_EXEC_TIMEOUT;
// where they are below Config.Timeout its own report comes first.
//
// A Call's choice of an algorithm is not for HCCL, which makes it by HCCL_ALGO; but
// for "ring": sums of floats come out as from a Group's ring then, to the bit, as
// partners want it that are to be deterministic; they are folded on the host. A
// Codec's values take the road of 16-bit sums; of one for the way between hosts only
// the sums inside a host, in float32, come before and the results go out after.
package hccl
