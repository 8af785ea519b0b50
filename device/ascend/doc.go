// Package ascend binds the runtime of Ascend devices (libascendcl, or libacl_rt,
// of CANN) without cgo: devices, threads with a context, streams, events, memory
// on the device and pinned memory on the host.
//
// The binding is behind the build tag ascend, since a binary that loads libraries
// is linked dynamically; without the tag, or on another system than Linux, Load
// returns an error that says how to build. A process loads a Library once, opens
// each of its devices on it, and closes the devices before the Library.
//
// A context belongs to a thread of the system and an error's text to the thread
// that saw it. So every call happens on a Thread: a goroutine on a system thread
// of its own, which has the device's context and runs what is posted to it. What
// blocks gets a Thread of its own.
//
// Nothing here has met a device: it is tested with the simulated libraries of
// internal/ascendsim. Operators are package aclnn's. ParseSMI reads what npu-smi tells
// about devices before any is opened.
package ascend
