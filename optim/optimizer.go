package optim

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Segment is a part of a parameter: its elements [Lo, Hi). A whole parameter is
// one segment; a sharded optimizer has the part that its rank owns. Lo is a
// multiple of device.NormBlock.
type Segment struct {
	Param  *nn.Param
	Lo, Hi int
	Grad   device.Buf // the gradient of the segment, F32, Hi-Lo elements
	Group  int        // index of the parameter group
}

// Value returns the segment's part of the master.
func (s Segment) Value() device.Buf { return s.Param.Value.Slice(s.Lo, s.Hi) }

// Optimizer updates segments. It keeps its state per segment, in the order
// given to Init, in memory of the device. One goroutine uses it.
type Optimizer interface {
	// Init allocates state for the segments; it is called again when they
	// change, and then carries over nothing.
	Init(dev device.Device, segments []Segment) error
	// Update does one step (1 for the first): gradients are multiplied by
	// scale first, and the learning rate is lr times the group's factor.
	Update(step int, segments []Segment, lr, scale float32)
	// State visits every state tensor of every segment, by name such as
	// "momentum", in a fixed order; the visitor may read or write it. It is how
	// state is saved, loaded and resharded.
	State(visit func(name string, s Segment, t device.Buf) error) error
}

// Group is settings shared by some parameters.
type Group struct {
	LRFactor    float32 // multiplies the learning rate; 0 means 1
	WeightDecay float32
}
