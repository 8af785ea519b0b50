package cpu

import "github.com/gradfusion/gradfusion/device"

// mixed is the kernels of a device for tensors of any floating-point type, which
// most convert on their way through the cache. What they do in float32 only,
// device.Widened does on whole tensors.
type mixed struct {
	*kernels
	widened *device.Widened
}

// Of rows of vectors, kernels make images of float32.

func (m *mixed) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	if d.Layout == device.Plain {
		m.widened.Moments(d, mean, m2, x)
		return
	}
	m.kernels.Moments(d, mean, m2, x)
}

func (m *mixed) BatchNormForward(d device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	if d.Layout == device.Plain {
		m.widened.BatchNormForward(d, y, x, mean, invstd, scale, shift, residual)
		return
	}
	m.kernels.BatchNormForward(d, y, x, mean, invstd, scale, shift, residual)
}

func (m *mixed) BatchNormBackward(d device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	if d.Layout == device.Plain {
		m.widened.BatchNormBackward(d, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
		return
	}
	m.kernels.BatchNormBackward(d, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
}

// Convolutions in groups copy the channels of a group, and one into a plain image
// sets that out from scratch: both in float32.

func (m *mixed) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	if d.Groups > 1 {
		m.widened.ConvForward(d, y, x, w, bias)
		return
	}
	m.kernels.ConvForward(d, y, x, w, bias)
}

func (m *mixed) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	if d.Groups > 1 || d.XLayout == device.Plain && device.IsHalf(dx) {
		m.widened.ConvBackwardInput(d, dx, dy, w)
		return
	}
	m.kernels.ConvBackwardInput(d, dx, dy, w)
}

func (m *mixed) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	if d.Groups > 1 {
		m.widened.ConvBackwardWeight(d, dw, x, dy)
		return
	}
	m.kernels.ConvBackwardWeight(d, dw, x, dy)
}

// These are in float32 altogether.

func (m *mixed) SquaredErrorForward(loss, x, t device.Buf) {
	m.widened.SquaredErrorForward(loss, x, t)
}

func (m *mixed) SquaredErrorBackward(dx, x, t device.Buf, seed float32) {
	m.widened.SquaredErrorBackward(dx, x, t, seed)
}

func (m *mixed) Reorder(dst device.Buf, dstLayout device.Layout, src device.Buf, srcLayout device.Layout, n, c, h, w int) {
	m.widened.Reorder(dst, dstLayout, src, srcLayout, n, c, h, w)
}

func (m *mixed) CopyChannels(layout device.Layout, dst device.Buf, dstC, at int, src device.Buf, srcC, n, h, w int) {
	m.widened.CopyChannels(layout, dst, dstC, at, src, srcC, n, h, w)
}

func (m *mixed) ExtractChannels(layout device.Layout, dst device.Buf, dstC int, src device.Buf, srcC, at, n, h, w int, accumulate bool) {
	m.widened.ExtractChannels(layout, dst, dstC, src, srcC, at, n, h, w, accumulate)
}
