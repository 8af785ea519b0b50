package optim

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Segment is a part of a parameter: its elements [Lo, Hi). A whole parameter is
// one segment; a sharded optimizer has the part that its rank owns. Lo is a
// multiple of device.NormBlock, and so is Hi unless it is the parameter's end.
type Segment struct {
	Param  *nn.Param
	Lo, Hi int
	Grad   device.Buf // the gradient of the segment, F32, Hi-Lo elements
	// Rows are the rows of the parameter that have a gradient, ascending, where
	// the parameter is a table of which the others have none: Grad is zero there.
	// Nil means all rows.
	Rows []int32
}

// Value returns the segment's part of the master.
func (s Segment) Value() device.Buf { return s.Param.Value.Slice(s.Lo, s.Hi) }

// Optimizer updates segments. It keeps its state per segment, in the order
// given to Init, in memory of the device. One goroutine uses it.
type Optimizer interface {
	// Init allocates state for the segments; it is called again when they
	// change, and then carries over nothing. A segment that is no part of its
	// parameter is an error.
	Init(dev device.Device, segments []Segment) error
	// Update does one step (1 for the first) over the segments given to Init,
	// in the same order, with this step's gradients; other segments panic.
	// A parameter that is frozen keeps its value and its state.
	// Gradients are multiplied by scale first, and the learning rate is lr
	// times the factor of the parameter's group. It allocates nothing, and only
	// an optimizer from elsewhere, such as interop/gorgonia's, returns an error:
	// parameters are then undefined.
	Update(step int, segments []Segment, lr, scale float32) error
	// State visits every state tensor of every segment, by name such as
	// "momentum", in a fixed order; the visitor may read or write it. It is how
	// state is saved, loaded and resharded.
	State(visit func(name string, s Segment, t device.Buf) error) error
}

// Partial is an Optimizer whose update of a segment needs no other segment, so that
// some can be updated before the gradients of others are there.
type Partial interface {
	Optimizer
	// UpdateSome is Update of segments[lo:hi]. The calls of a step, which all give
	// the same step, segments, lr and scale, are for every segment once, in any order;
	// only those of [lo, hi) have gradients that are looked at.
	UpdateSome(step int, segments []Segment, lo, hi int, lr, scale float32) error
}
