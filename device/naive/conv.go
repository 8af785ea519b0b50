package naive

import "github.com/gradfusion/gradfusion/device"

// requireConv checks the three tensors under the names that the kernel gives
// them.
func requireConv(kernel string, d device.Conv, xName string, x device.Buf, yName string, y device.Buf, wName string, w device.Buf) {
	d.Check(kernel)
	device.Require(kernel, xName, x, device.F32, d.XLen())
	device.Require(kernel, yName, y, device.F32, d.YLen())
	device.Require(kernel, wName, w, device.F32, d.WeightLen())
}

func xImage(d device.Conv) image { return image{d.XLayout, d.C, d.H, d.W} }

func yImage(d device.Conv) image { return image{device.Blocked16, d.K, d.OutH(), d.OutW()} }

// weightAt returns the offset of w[k][c][r][s], c counting from the first
// channel of k's group.
func weightAt(d device.Conv, k, c, r, s int) int { return ((k*d.GroupC()+c)*d.R+r)*d.S + s }

// firstInput returns the first input channel of k's group.
func firstInput(d device.Conv, k int) int { return k / d.GroupK() * d.GroupC() }

// source returns the input pixel that tap (r, s) of output (oy, ox) reads, and
// whether it lies inside the image.
func source(d device.Conv, oy, ox, r, s int) (y, x int, ok bool) {
	y, x = oy*d.StrideH+r*max(1, d.DilateH)-d.PadH, ox*d.StrideW+s*max(1, d.DilateW)-d.PadW
	return y, x, y >= 0 && y < d.H && x >= 0 && x < d.W
}

func (kernels) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	requireConv("ConvForward", d, "x", x, "y", y, "w", w)
	if !bias.IsZero() {
		device.Require("ConvForward", "bias", bias, device.F32, d.K)
	}
	in, out, weights := x.F32(), y.F32(), w.F32()
	xi, yi := xImage(d), yImage(d)
	for n := range d.N {
		for k := range d.K {
			for oy := range yi.h {
				for ox := range yi.w {
					var sum float64
					for c := range d.GroupC() {
						for r := range d.R {
							for s := range d.S {
								if iy, ix, ok := source(d, oy, ox, r, s); ok {
									sum += float64(float64(weights[weightAt(d, k, c, r, s)]) * float64(in[xi.at(n, firstInput(d, k)+c, iy, ix)]))
								}
							}
						}
					}
					if !bias.IsZero() {
						sum += float64(bias.F32()[k])
					}
					out[yi.at(n, k, oy, ox)] = float32(sum)
				}
			}
		}
	}
	yi.zeroPadding(out, d.N)
}

func (kernels) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	requireConv("ConvBackwardInput", d, "dx", dx, "dy", dy, "w", w)
	in, out, weights := dx.F32(), dy.F32(), w.F32()
	xi, yi := xImage(d), yImage(d)
	sums := make([]float64, d.H*d.W)
	for n := range d.N {
		for c := range d.C {
			clear(sums)
			group := c / d.GroupC()
			for k := group * d.GroupK(); k < (group+1)*d.GroupK(); k++ {
				for oy := range yi.h {
					for ox := range yi.w {
						g := float64(out[yi.at(n, k, oy, ox)])
						for r := range d.R {
							for s := range d.S {
								if iy, ix, ok := source(d, oy, ox, r, s); ok {
									sums[iy*d.W+ix] += float64(g * float64(weights[weightAt(d, k, c%d.GroupC(), r, s)]))
								}
							}
						}
					}
				}
			}
			for i, sum := range sums {
				put(in, xi.at(n, c, i/d.W, i%d.W), float32(sum), d.Accumulate)
			}
		}
	}
	xi.zeroPadding(in, d.N)
}

func (kernels) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	requireConv("ConvBackwardWeight", d, "x", x, "dy", dy, "dw", dw)
	in, out, weights := x.F32(), dy.F32(), dw.F32()
	xi, yi := xImage(d), yImage(d)
	for k := range d.K {
		for c := range d.GroupC() {
			for r := range d.R {
				for s := range d.S {
					var sum float64
					for n := range d.N {
						for oy := range yi.h {
							for ox := range yi.w {
								if iy, ix, ok := source(d, oy, ox, r, s); ok {
									sum += float64(float64(out[yi.at(n, k, oy, ox)]) * float64(in[xi.at(n, firstInput(d, k)+c, iy, ix)]))
								}
							}
						}
					}
					put(weights, weightAt(d, k, c, r, s), float32(sum), d.Accumulate)
				}
			}
		}
	}
}

func (kernels) SumChannels(out, x device.Buf, n, c, h, w int, accumulate bool) {
	device.Require("SumChannels", "out", out, device.F32, c)
	device.Require("SumChannels", "x", x, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	t := image{device.Blocked16, c, h, w}
	for j := range c {
		var sum float64
		for i := range n {
			for p := range h * w {
				sum += float64(x.F32()[t.at(i, j, p/w, p%w)])
			}
		}
		put(out.F32(), j, float32(sum), accumulate)
	}
}
