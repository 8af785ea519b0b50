package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// window returns the part of a pooling window that lies inside the image.
func window(o, stride, pad, size, limit int) (lo, hi int) {
	lo = o*stride - pad
	return max(lo, 0), min(lo+size, limit)
}

// divisor returns what an average divides by; at least 1.
func divisor(d device.Pool, y0, y1, x0, x1 int) float64 {
	if d.CountPad {
		return float64(d.R * d.S)
	}
	return float64(max(1, max(0, y1-y0)*max(0, x1-x0)))
}

func (kernels) PoolForward(d device.Pool, y, arg, x device.Buf) {
	d.Check("PoolForward")
	device.Require("PoolForward", "y", y, device.F32, d.YLen())
	device.Require("PoolForward", "x", x, device.F32, d.XLen())
	if d.Kind == device.MaxPool {
		device.Require("PoolForward", "arg", arg, device.I32, d.YLen())
	}
	xi := image{device.Blocked16, d.C, d.H, d.W}
	yi := image{device.Blocked16, d.C, d.OutH(), d.OutW()}
	for n := range d.N {
		for c := range xi.channels() {
			for oy := range yi.h {
				y0, y1 := window(oy, d.StrideH, d.PadH, d.R, d.H)
				for ox := range yi.w {
					x0, x1 := window(ox, d.StrideW, d.PadW, d.S, d.W)
					o := yi.at(n, c, oy, ox)
					best, where, sum := float32(math.Inf(-1)), int32(-1), 0.0
					for iy := y0; iy < y1; iy++ {
						for ix := x0; ix < x1; ix++ {
							v := x.F32()[xi.at(n, c, iy, ix)]
							sum += float64(v)
							if where < 0 || v > best || (v != v && best == best) {
								best, where = v, int32(iy*d.W+ix)
							}
						}
					}
					if d.Kind == device.MaxPool {
						y.F32()[o], arg.I32()[o] = best, where
					} else {
						y.F32()[o] = float32(sum / divisor(d, y0, y1, x0, x1))
					}
				}
			}
		}
	}
	yi.zeroPadding(y.F32(), d.N)
}

func (kernels) PoolBackward(d device.Pool, dx, dy, arg device.Buf) {
	d.Check("PoolBackward")
	device.Require("PoolBackward", "dx", dx, device.F32, d.XLen())
	device.Require("PoolBackward", "dy", dy, device.F32, d.YLen())
	if d.Kind == device.MaxPool {
		device.Require("PoolBackward", "arg", arg, device.I32, d.YLen())
	}
	xi := image{device.Blocked16, d.C, d.H, d.W}
	yi := image{device.Blocked16, d.C, d.OutH(), d.OutW()}
	sums := make([]float64, d.H*d.W)
	for n := range d.N {
		for c := range xi.channels() {
			clear(sums)
			for oy := range yi.h {
				y0, y1 := window(oy, d.StrideH, d.PadH, d.R, d.H)
				for ox := range yi.w {
					x0, x1 := window(ox, d.StrideW, d.PadW, d.S, d.W)
					o := yi.at(n, c, oy, ox)
					g := float64(dy.F32()[o])
					if d.Kind == device.MaxPool {
						if where := arg.I32()[o]; where >= 0 {
							sums[where] += g
						}
						continue
					}
					for iy := y0; iy < y1; iy++ {
						for ix := x0; ix < x1; ix++ {
							sums[iy*d.W+ix] += g / divisor(d, y0, y1, x0, x1)
						}
					}
				}
			}
			for i, sum := range sums {
				put(dx.F32(), xi.at(n, c, i/d.W, i%d.W), float32(sum), d.Accumulate)
			}
		}
	}
	xi.zeroPadding(dx.F32(), d.N)
}

func (kernels) GlobalAvgForward(y, x device.Buf, n, c, h, w int) {
	device.Require("GlobalAvgForward", "y", y, device.F32, n*c)
	device.Require("GlobalAvgForward", "x", x, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	t := image{device.Blocked16, c, h, w}
	for i := range n {
		for j := range c {
			var sum float64
			for p := range h * w {
				sum += float64(x.F32()[t.at(i, j, p/w, p%w)])
			}
			y.F32()[i*c+j] = float32(sum / float64(h*w))
		}
	}
}

func (kernels) GlobalAvgBackward(dx, dy device.Buf, n, c, h, w int, accumulate bool) {
	device.Require("GlobalAvgBackward", "dx", dx, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	device.Require("GlobalAvgBackward", "dy", dy, device.F32, n*c)
	t := image{device.Blocked16, c, h, w}
	inverse := 1 / float32(h*w)
	for i := range n {
		for j := range c {
			for p := range h * w {
				put(dx.F32(), t.at(i, j, p/w, p%w), dy.F32()[i*c+j]*inverse, accumulate)
			}
		}
	}
	t.zeroPadding(dx.F32(), n)
}
