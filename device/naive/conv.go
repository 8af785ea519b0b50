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

// tap is a product that a convolution adds up for each pair of channels: an output
// pixel, a weight and an input pixel.
type tap struct{ out, weight, in int }

// taps lists the products inside the image, by output pixel and then by weight.
func taps(d device.Conv) []tap {
	var all []tap
	for oy := range d.OutH() {
		for ox := range d.OutW() {
			for r := range d.R {
				for s := range d.S {
					y, x := oy*d.StrideH+r*max(1, d.DilateH)-d.PadH, ox*d.StrideW+s*max(1, d.DilateW)-d.PadW
					if y >= 0 && y < d.H && x >= 0 && x < d.W {
						all = append(all, tap{oy*d.OutW() + ox, r*d.S + s, y*d.W + x})
					}
				}
			}
		}
	}
	return all
}

// weightsAt returns the taps of w[k][c], c counting from the first channel of k's
// group.
func weightsAt(d device.Conv, w []float32, k, c int) []float32 {
	at := (k*d.GroupC() + c) * d.R * d.S
	return w[at : at+d.R*d.S]
}

// firstInput returns the first input channel of k's group.
func firstInput(d device.Conv, k int) int { return k / d.GroupK() * d.GroupC() }

func (kernels) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	requireConv("ConvForward", d, "x", x, "y", y, "w", w)
	if !bias.IsZero() {
		device.Require("ConvForward", "bias", bias, device.F32, d.K)
	}
	taps, yi, sums := taps(d), yImage(d), make([]float64, d.OutH()*d.OutW())
	for n := range d.N {
		in := xImage(d).planes(x.F32(), n)
		for k := range d.K {
			clear(sums)
			for c := range d.GroupC() {
				weights, plane := weightsAt(d, w.F32(), k, c), in[firstInput(d, k)+c]
				for _, t := range taps {
					sums[t.out] += float64(float64(weights[t.weight]) * plane[t.in])
				}
			}
			for i, sum := range sums {
				if !bias.IsZero() {
					sum += float64(bias.F32()[k])
				}
				y.F32()[yi.at(n, k, i/yi.w, i%yi.w)] = float32(sum)
			}
		}
	}
	yi.zeroPadding(y.F32(), d.N)
}

func (kernels) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	requireConv("ConvBackwardInput", d, "dx", dx, "dy", dy, "w", w)
	taps, xi, sums := taps(d), xImage(d), make([]float64, d.H*d.W)
	for n := range d.N {
		out := yImage(d).planes(dy.F32(), n)
		for c := range d.C {
			clear(sums)
			group := c / d.GroupC()
			for k := group * d.GroupK(); k < (group+1)*d.GroupK(); k++ {
				weights, plane := weightsAt(d, w.F32(), k, c%d.GroupC()), out[k]
				for _, t := range taps {
					sums[t.in] += float64(plane[t.out] * float64(weights[t.weight]))
				}
			}
			for i, sum := range sums {
				put(dx.F32(), xi.at(n, c, i/d.W, i%d.W), float32(sum), d.Accumulate)
			}
		}
	}
	xi.zeroPadding(dx.F32(), d.N)
}

func (kernels) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	requireConv("ConvBackwardWeight", d, "x", x, "dy", dy, "dw", dw)
	taps, sums := taps(d), make([]float64, d.R*d.S)
	in, out := make([][][]float64, d.N), make([][][]float64, d.N)
	for n := range d.N {
		in[n], out[n] = xImage(d).planes(x.F32(), n), yImage(d).planes(dy.F32(), n)
	}
	for k := range d.K {
		for c := range d.GroupC() {
			clear(sums)
			for n := range d.N {
				from, to := in[n][firstInput(d, k)+c], out[n][k]
				for _, t := range taps {
					sums[t.weight] += float64(to[t.out] * from[t.in])
				}
			}
			weights := weightsAt(d, dw.F32(), k, c)
			for i, sum := range sums {
				put(weights, i, float32(sum), d.Accumulate)
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
