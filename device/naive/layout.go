package naive

import "github.com/gradfusion/gradfusion/device"

func (kernels) Reorder(dst device.Buf, dstLayout device.Layout, src device.Buf, srcLayout device.Layout, n, c, h, w int) {
	device.Require("Reorder", "dst", dst, device.F32, device.ImageLen(dstLayout, n, c, h, w))
	device.Require("Reorder", "src", src, device.F32, device.ImageLen(srcLayout, n, c, h, w))
	to, from := image{dstLayout, c, h, w}, image{srcLayout, c, h, w}
	moveChannels(dst.F32(), to, 0, src.F32(), from, 0, n, c, false)
	to.zeroPadding(dst.F32(), n)
}

// moveChannels stores or adds count channels of src from channel fromAt into
// dst from channel toAt.
func moveChannels(dst []float32, to image, toAt int, src []float32, from image, fromAt, n, count int, accumulate bool) {
	for i := range n {
		for c := range count {
			for y := range to.h {
				for x := range to.w {
					put(dst, to.at(i, toAt+c, y, x), src[from.at(i, fromAt+c, y, x)], accumulate)
				}
			}
		}
	}
}

func (kernels) CopyChannels(layout device.Layout, dst device.Buf, dstC, at int, src device.Buf, srcC, n, h, w int) {
	device.Require("CopyChannels", "dst", dst, device.F32, device.ImageLen(layout, n, dstC, h, w))
	device.Require("CopyChannels", "src", src, device.F32, device.ImageLen(layout, n, srcC, h, w))
	device.RequireThat(at >= 0 && at+srcC <= dstC, "CopyChannels", "at", "puts channels outside of dst")
	to, from := image{layout, dstC, h, w}, image{layout, srcC, h, w}
	moveChannels(dst.F32(), to, at, src.F32(), from, 0, n, srcC, false)
	to.zeroPadding(dst.F32(), n)
}

func (kernels) ExtractChannels(layout device.Layout, dst device.Buf, dstC int, src device.Buf, srcC, at, n, h, w int, accumulate bool) {
	device.Require("ExtractChannels", "dst", dst, device.F32, device.ImageLen(layout, n, dstC, h, w))
	device.Require("ExtractChannels", "src", src, device.F32, device.ImageLen(layout, n, srcC, h, w))
	device.RequireThat(at >= 0 && at+dstC <= srcC, "ExtractChannels", "at", "names channels outside of src")
	to, from := image{layout, dstC, h, w}, image{layout, srcC, h, w}
	moveChannels(dst.F32(), to, 0, src.F32(), from, at, n, dstC, accumulate)
	to.zeroPadding(dst.F32(), n)
}
