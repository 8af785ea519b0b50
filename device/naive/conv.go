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

// weightsAt returns the taps of w[k][c], c counting from the first channel of k's
// group.
func weightsAt(d device.Conv, w []float32, k, c int) []float32 {
	at := (k*d.GroupC() + c) * d.R * d.S
	return w[at : at+d.R*d.S]
}

// firstInput returns the first input channel of k's group.
func firstInput(d device.Conv, k int) int { return k / d.GroupK() * d.GroupC() }

// source returns the input pixel that tap (r, s) of output (oy, ox) reads, and
// whether it lies inside the image.
func source(d device.Conv, oy, ox, r, s int) (pixel int, ok bool) {
	y, x := oy*d.StrideH+r*max(1, d.DilateH)-d.PadH, ox*d.StrideW+s*max(1, d.DilateW)-d.PadW
	return y*d.W + x, y >= 0 && y < d.H && x >= 0 && x < d.W
}

// product is one that a convolution adds up for each pair of channels: of an output
// pixel, a weight and an input pixel.
type product struct{ out, weight, in int }

// products lists those inside the image, by output pixel and then by weight.
func products(d device.Conv) []product {
	var all []product
	for out := range d.OutH() * d.OutW() {
		for weight := range d.R * d.S {
			if in, ok := source(d, out/d.OutW(), out%d.OutW(), weight/d.S, weight%d.S); ok {
				all = append(all, product{out, weight, in})
			}
		}
	}
	return all
}

// ConvForward finds each product anew, where the backward passes list them, because
// evaluation passes allocate nothing.
func (kernels) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	requireConv("ConvForward", d, "x", x, "y", y, "w", w)
	if !bias.IsZero() {
		device.Require("ConvForward", "bias", bias, device.F32, d.K)
	}
	in, out, xi, yi := x.F32(), y.F32(), xImage(d), yImage(d)
	channels := d.GroupC()
	for n := range d.N {
		for k := range d.K {
			weights, from := w.F32()[k*channels*d.R*d.S:], firstInput(d, k)
			for p := range yi.h * yi.w {
				oy, ox := p/yi.w, p%yi.w
				var sum float64
				for c := range channels {
					first, step := xi.plane(n, from+c)
					for r := range d.R {
						for s := range d.S {
							if pixel, ok := source(d, oy, ox, r, s); ok {
								sum += float64(float64(weights[(c*d.R+r)*d.S+s]) * float64(in[first+pixel*step]))
							}
						}
					}
				}
				if !bias.IsZero() {
					sum += float64(bias.F32()[k])
				}
				first, step := yi.plane(n, k)
				out[first+p*step] = float32(sum)
			}
		}
	}
	yi.zeroPadding(out, d.N)
}

func (kernels) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	requireConv("ConvBackwardInput", d, "dx", dx, "dy", dy, "w", w)
	in, out, xi, yi := dx.F32(), dy.F32(), xImage(d), yImage(d)
	products, sums := products(d), make([]float64, d.H*d.W)
	for n := range d.N {
		for c := range d.C {
			clear(sums)
			group := c / d.GroupC()
			for k := group * d.GroupK(); k < (group+1)*d.GroupK(); k++ {
				weights := weightsAt(d, w.F32(), k, c%d.GroupC())
				first, step := yi.plane(n, k)
				for _, p := range products {
					sums[p.in] += float64(float64(out[first+p.out*step]) * float64(weights[p.weight]))
				}
			}
			first, step := xi.plane(n, c)
			for pixel, sum := range sums {
				put(in, first+pixel*step, float32(sum), d.Accumulate)
			}
		}
	}
	xi.zeroPadding(in, d.N)
}

func (kernels) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	requireConv("ConvBackwardWeight", d, "x", x, "dy", dy, "dw", dw)
	in, out, xi, yi := x.F32(), dy.F32(), xImage(d), yImage(d)
	products, sums := products(d), make([]float64, d.R*d.S)
	for k := range d.K {
		for c := range d.GroupC() {
			clear(sums)
			for n := range d.N {
				from, fromStep := xi.plane(n, firstInput(d, k)+c)
				to, toStep := yi.plane(n, k)
				for _, p := range products {
					sums[p.weight] += float64(float64(out[to+p.out*toStep]) * float64(in[from+p.in*fromStep]))
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
