package naive

import (
	"context"

	"github.com/gradfusion/gradfusion/device"
)

// Device implements device.Device with plain loops.
type Device struct{ kernels *device.Widened }

var (
	_ device.Device  = (*Device)(nil)
	_ device.Kernels = kernels{}
)

// New returns a Device.
func New() *Device { return &Device{device.NewWidened(kernels{}, device.HostAlloc)} }

// Name returns "naive".
func (*Device) Name() string { return "naive" }

// Alloc returns zeroed heap memory.
func (*Device) Alloc(t device.Type, n int) (device.Buf, error) { return device.HostAlloc(t, n) }

// Region returns heap memory.
func (*Device) Region(least int) (device.Buf, error) { return device.HostAlloc(device.U8, least) }

// Release does nothing: the garbage collector finds it.
func (*Device) Release(device.Buf) {}

// Sync does nothing: kernels return when they are done.
func (*Device) Sync() error { return nil }

// Record returns an event that has happened.
func (*Device) Record() device.Event { return done{} }

// After waits for e.
func (*Device) After(e device.Event) { _ = e.Wait(context.Background()) }

// Kernels returns the arithmetic.
func (d *Device) Kernels() device.Kernels { return d.kernels }

// Close does nothing.
func (*Device) Close() error { return nil }

type done struct{}

func (done) Wait(context.Context) error { return nil }

// kernels implements device.Kernels. Its methods stand in a file per family.
type kernels struct{}

// image finds elements of a tensor of images.
type image struct {
	layout  device.Layout
	c, h, w int
}

// at returns the offset of channel c of pixel (y, x) of image n.
func (t image) at(n, c, y, x int) int {
	if t.layout == device.Blocked16 {
		block := n*device.Blocks(t.c) + c/device.Block
		return ((block*t.h+y)*t.w+x)*device.Block + c%device.Block
	}
	return ((n*t.c+c)*t.h+y)*t.w + x
}

// channels returns how many channels the memory holds, padding included.
func (t image) channels() int {
	if t.layout == device.Blocked16 {
		return device.Blocks(t.c) * device.Block
	}
	return t.c
}

// plane returns the offset of the first pixel of channel c of image n, and how far
// its pixels are apart.
func (t image) plane(n, c int) (first, step int) {
	if t.layout == device.Blocked16 {
		return t.at(n, c, 0, 0), device.Block
	}
	return t.at(n, c, 0, 0), 1
}

// put stores v, or adds it, at s[i].
func put(s []float32, i int, v float32, accumulate bool) {
	if accumulate {
		v = float32(v) + s[i] // v may be a product, which arm64 would fuse with the sum
	}
	s[i] = v
}

// zeroPadding clears the channels that pad the last block of n images.
func (t image) zeroPadding(s []float32, n int) {
	for i := range n {
		for c := t.c; c < t.channels(); c++ {
			for y := range t.h {
				for x := range t.w {
					s[t.at(i, c, y, x)] = 0
				}
			}
		}
	}
}
