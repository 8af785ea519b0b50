package collective

import (
	"sync/atomic"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Direct runs calls of one group on memory that its ranks share, without
// messages: each rank reads a slice of everybody's buffer and writes the result
// to all, in rank order. All ranks of the group use it for the same calls in the
// same order; one goroutine at a time, but for Abort.
//
// After an error the Direct is of no more use, and peers may go on for a moment
// with reading and writing the buffers of the failed call.
type Direct interface {
	// Run carries out a call. handled is false, on all ranks alike, when it
	// cannot; nothing has been changed then.
	Run(c *DirectCall) (handled bool, err error)
	// Alloc returns n zeroed elements of each rank of the group, in its order; all
	// ranks can reach all of them until the transport is closed. c is a call without
	// buffers.
	Alloc(c *DirectCall, t device.Type, n int) ([]device.Buf, error)
	// Abort has the running call and all later ones return an error soon.
	Abort()
	// Close is called by all ranks, also after errors.
	Close()
}

// DirectCall is a call for a Direct.
type DirectCall struct {
	Kind    plan.Kind
	Op      Op
	Type    device.Type
	Root    int
	In, Out device.Buf
	Parts   []int // offsets of the ranks' parts, for kinds that have them
	// Head identifies the call. Check is given every peer's before anything
	// else is read or written; its error ends the call.
	Head  [HeadSize]byte
	Check func(peer int, head []byte) error
	// Fold sets dst to the reduction of parts, from left to right; dst overlaps
	// no part. Everything that computes the same bits may be used instead.
	Fold func(dst device.Buf, parts []device.Buf)
	// Foreground says that the caller has nothing else to do, so that waiting
	// may use the processor for a while.
	Foreground *atomic.Bool
	// Waiting tells for which rank of the group the call waits, -1 for none.
	Waiting *atomic.Int32
}
