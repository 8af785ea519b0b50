package device

import (
	"context"
)

// Event marks a point in a device's queue.
type Event interface {
	// Wait returns when all work enqueued before the event is done.
	Wait(context.Context) error
}

// Device owns memory and a queue of kernels. Its methods are safe for
// concurrent use; kernels enqueued by one goroutine run in its order.
type Device interface {
	// Name is "cpu", "naive" and so on, with the kernel set that was chosen,
	// such as "cpu(avx2)". Ranks compare it at start.
	Name() string
	// Alloc returns zeroed memory, aligned to 64 bytes, that lives until the
	// process ends or the garbage collector finds it unreachable.
	Alloc(t Type, n int) (Buf, error)
	// Region returns at least that many bytes, as U8 of undefined content,
	// for an Arena to cut up. They belong to the device until Release, or
	// until it closes: nothing may read them afterwards.
	Region(least int) (Buf, error)
	// Release gives back a Region.
	Release(Buf)
	// Sync waits for everything enqueued so far.
	Sync() error
	// Record marks the queue's present end.
	Record() Event
	// After makes later kernels wait for e.
	After(e Event)
	// Kernels returns the arithmetic.
	Kernels() Kernels
	// Close releases threads and regions. Buffers of Alloc stay readable.
	Close() error
}

// Layout is how a tensor of images lies in memory.
type Layout uint8

const (
	// Plain is row-major: [N][C][H][W] for images, [rows][columns] for matrices.
	Plain Layout = iota
	// Blocked16 is nChw16c: [N][ceil(C/16)][H][W][16]; the channels that pad
	// the last block are zero, and kernels keep them so.
	Blocked16
)

func (l Layout) String() string {
	if l == Blocked16 {
		return "nChw16c"
	}
	return "plain"
}

// Block is the number of channels in one block of the Blocked16 layout.
const Block = 16

// Blocks returns the number of blocks that c channels take.
func Blocks(c int) int { return (c + Block - 1) / Block }

// Align is the alignment of allocations, in bytes.
const Align = 64
