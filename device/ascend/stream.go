//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"time"
	"unsafe"
)

// The methods of this file run on a Thread of the device: what they are called
// on is in the name of each, and they return an error of that very call.

// Stream is a queue of the device's work. It stops at its first failure.
type Stream uintptr

// Event is a mark in a stream; it may be recorded again and again.
type Event uintptr

// NewStream makes a stream.
func (d *Device) NewStream() (Stream, error) {
	var s Stream
	y := &d.library.symbols
	if err := d.library.Check("aclrtCreateStream", Call(y.aclrtCreateStream, uintptr(unsafe.Pointer(&s)))); err != nil {
		return 0, err
	}
	if err := d.library.Check("aclrtSetStreamFailureMode", Call(y.aclrtSetStreamFailureMode, uintptr(s), stopOnFailure)); err != nil {
		Call(y.aclrtDestroyStream, uintptr(s))
		return 0, err
	}
	return s, nil
}

// DestroyStream waits for the stream's work and frees it; forced it does not wait.
func (d *Device) DestroyStream(s Stream, force bool) error {
	if force {
		return d.library.Check("aclrtDestroyStreamForce", Call(d.library.symbols.aclrtDestroyStreamForce, uintptr(s)))
	}
	return d.library.Check("aclrtDestroyStream", Call(d.library.symbols.aclrtDestroyStream, uintptr(s)))
}

// AbortStream drops the work of a stream.
func (d *Device) AbortStream(s Stream) error {
	return d.library.Check("aclrtStreamAbort", Call(d.library.symbols.aclrtStreamAbort, uintptr(s)))
}

// SyncStream waits for the stream's work. When that takes longer than a time the
// error is a CallError of StreamTimeout.
func (d *Device) SyncStream(s Stream, limit time.Duration) error {
	return d.library.Check("aclrtSynchronizeStreamWithTimeout", Call(d.library.symbols.aclrtSynchronizeStreamWithTimeout, uintptr(s), milliseconds(limit)))
}

// milliseconds is a time as the runtime takes it: at least 1, as 0 may mean none.
func milliseconds(d time.Duration) uintptr { return uintptr(uint32(max(1, d.Milliseconds()))) }

// NewTimer makes an event that streams can wait for, with the time of its
// recording.
func (d *Device) NewTimer() (Event, error) {
	var e Event
	err := d.library.Check("aclrtCreateEventExWithFlag", Call(d.library.symbols.aclrtCreateEventExWithFlag, uintptr(unsafe.Pointer(&e)), eventSync|eventTimeLine))
	return e, err
}

// Elapsed is the time between two timers that have passed.
func (d *Device) Elapsed(from, to Event) (time.Duration, error) {
	var ms float32
	err := d.library.Check("aclrtEventElapsedTime", Call(d.library.symbols.aclrtEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(from), uintptr(to)))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// DestroyEvent frees an event.
func (d *Device) DestroyEvent(e Event) error {
	return d.library.Check("aclrtDestroyEvent", Call(d.library.symbols.aclrtDestroyEvent, uintptr(e)))
}

// RecordEvent puts the event at the stream's present end.
func (d *Device) RecordEvent(e Event, s Stream) error {
	return d.library.Check("aclrtRecordEvent", Call(d.library.symbols.aclrtRecordEvent, uintptr(e), uintptr(s)))
}

// WaitEvent makes later work of the stream wait for the event.
func (d *Device) WaitEvent(s Stream, e Event) error {
	return d.library.Check("aclrtStreamWaitEvent", Call(d.library.symbols.aclrtStreamWaitEvent, uintptr(s), uintptr(e)))
}

// EventPassed reports whether the event's work is done.
func (d *Device) EventPassed(e Event) (bool, error) {
	var status int32
	err := d.library.Check("aclrtQueryEventStatus", Call(d.library.symbols.aclrtQueryEventStatus, uintptr(e), uintptr(unsafe.Pointer(&status))))
	return status == eventComplete, err
}

// StreamIdle reports whether a stream has no work.
func (d *Device) StreamIdle(s Stream) (bool, error) {
	var status int32
	err := d.library.Check("aclrtStreamQuery", Call(d.library.symbols.aclrtStreamQuery, uintptr(s), uintptr(unsafe.Pointer(&status))))
	return status == streamComplete, err
}

// SyncEvent waits for the event on this thread, which costs no core. When that
// takes longer than a time the error is a CallError of EventTimeout.
func (d *Device) SyncEvent(e Event, limit time.Duration) error {
	return d.library.Check("aclrtSynchronizeEventWithTimeout", Call(d.library.symbols.aclrtSynchronizeEventWithTimeout, uintptr(e), milliseconds(limit)))
}

// SetWaitTimeout bounds how long a stream of this process waits for an event.
func (d *Device) SetWaitTimeout(limit time.Duration) error {
	return d.library.Check("aclrtSetOpWaitTimeout", Call(d.library.symbols.aclrtSetOpWaitTimeout, uintptr(uint32(limit.Seconds()))))
}
