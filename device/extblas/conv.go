package extblas

import "github.com/gradfusion/gradfusion/device"

// unfolds reports whether d is a convolution that this package knows: one group,
// and all fields beside these at their zero values.
func unfolds(d device.Conv) bool {
	return d.N > 0 && d.Groups <= 1 && d == device.Conv{
		N: d.N, C: d.C, H: d.H, W: d.W, K: d.K, R: d.R, S: d.S, StrideH: d.StrideH, StrideW: d.StrideW,
		PadH: d.PadH, PadW: d.PadW, DilateH: d.DilateH, DilateW: d.DilateW, Groups: d.Groups,
		XLayout: d.XLayout, Accumulate: d.Accumulate,
	}
}

func requireConv(kernel string, d device.Conv, xName string, x device.Buf, yName string, y device.Buf, wName string, w device.Buf) {
	d.Check(kernel)
	device.Require(kernel, xName, x, device.F32, d.XLen())
	device.Require(kernel, yName, y, device.F32, d.YLen())
	device.Require(kernel, wName, w, device.F32, d.WeightLen())
}

// sizes are the lengths of one image: of x, of the rows and columns of its
// unfolded matrix.
func sizes(d device.Conv) (image, taps, pixels int) {
	return d.C * d.H * d.W, d.C * d.R * d.S, d.OutH() * d.OutW()
}

// ConvForward multiplies the weights [K][taps] with the unfolded image
// [taps][pixels].
func (k *kernels) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	if !unfolds(d) {
		k.Kernels.ConvForward(d, y, x, w, bias)
		return
	}
	if device.IsHalf(y, x, w) {
		k.owner.widened.ConvForward(d, y, x, w, bias)
		return
	}
	requireConv("ConvForward", d, "x", x, "y", y, "w", w)
	if !bias.IsZero() {
		device.Require("ConvForward", "bias", bias, device.F32, d.K)
	}
	image, taps, pixels := sizes(d)
	s := k.owner.take()
	in := k.plain(&s.image, d.XLayout, x, d.N, d.C, d.H, d.W)
	columns, out := s.columns.floats(taps*pixels), s.planes.floats(d.N*d.K*pixels)
	for n := range d.N {
		unfold(d, columns.F32(), in.F32()[n*image:][:image])
		k.owner.library.multiply(product{
			m: d.K, n: pixels, k: taps, lda: taps, ldb: pixels, ldc: pixels,
			a: start(w), b: start(columns), c: start(out.Slice(n*d.K*pixels, (n+1)*d.K*pixels)),
		})
	}
	if !bias.IsZero() {
		addToPlanes(out.F32(), bias.F32()[:d.K], pixels)
	}
	k.Reorder(y, device.Blocked16, out, device.Plain, d.N, d.K, d.OutH(), d.OutW())
	k.owner.give(s)
}

// ConvBackwardInput multiplies the transposed weights [taps][K] with the
// gradient [K][pixels] and folds what comes out.
func (k *kernels) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	if !unfolds(d) {
		k.Kernels.ConvBackwardInput(d, dx, dy, w)
		return
	}
	if device.IsHalf(dx, dy, w) {
		k.owner.widened.ConvBackwardInput(d, dx, dy, w)
		return
	}
	requireConv("ConvBackwardInput", d, "dx", dx, "dy", dy, "w", w)
	image, taps, pixels := sizes(d)
	s := k.owner.take()
	out := k.plain(&s.planes, device.Blocked16, dy, d.N, d.K, d.OutH(), d.OutW())
	columns, in := s.columns.floats(taps*pixels), dx.Slice(0, d.XLen())
	if d.XLayout != device.Plain {
		in = s.image.floats(d.N * image)
	}
	if d.XLayout != device.Plain || !d.Accumulate {
		clear(in.F32())
	}
	for n := range d.N {
		k.owner.library.multiply(product{
			transA: true, m: taps, n: pixels, k: d.K, lda: taps, ldb: pixels, ldc: pixels,
			a: start(w), b: start(out.Slice(n*d.K*pixels, (n+1)*d.K*pixels)), c: start(columns),
		})
		fold(d, in.F32()[n*image:][:image], columns.F32())
	}
	switch {
	case d.XLayout == device.Plain:
	case d.Accumulate:
		blocked := s.blocked.floats(d.XLen())
		k.Reorder(blocked, d.XLayout, in, device.Plain, d.N, d.C, d.H, d.W)
		k.Add(dx.Slice(0, d.XLen()), dx.Slice(0, d.XLen()), blocked)
	default:
		k.Reorder(dx, d.XLayout, in, device.Plain, d.N, d.C, d.H, d.W)
	}
	k.owner.give(s)
}

// ConvBackwardWeight adds, image after image, the product of the gradient
// [K][pixels] and the transposed unfolded image [pixels][taps].
func (k *kernels) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	if !unfolds(d) {
		k.Kernels.ConvBackwardWeight(d, dw, x, dy)
		return
	}
	if device.IsHalf(x, dy) {
		k.owner.widened.ConvBackwardWeight(d, dw, x, dy)
		return
	}
	requireConv("ConvBackwardWeight", d, "x", x, "dy", dy, "dw", dw)
	image, taps, pixels := sizes(d)
	s := k.owner.take()
	in := k.plain(&s.image, d.XLayout, x, d.N, d.C, d.H, d.W)
	out := k.plain(&s.planes, device.Blocked16, dy, d.N, d.K, d.OutH(), d.OutW())
	columns := s.columns.floats(taps * pixels)
	for n := range d.N {
		unfold(d, columns.F32(), in.F32()[n*image:][:image])
		k.owner.library.multiply(product{
			transB: true, m: d.K, n: taps, k: pixels, lda: pixels, ldb: pixels, ldc: taps,
			a: start(out.Slice(n*d.K*pixels, (n+1)*d.K*pixels)), b: start(columns), c: start(dw),
			accumulate: n > 0 || d.Accumulate,
		})
	}
	k.owner.give(s)
}

// plain returns images in the plain layout: x itself, or a copy in m.
func (k *kernels) plain(m *memory, layout device.Layout, x device.Buf, n, c, h, w int) device.Buf {
	if layout == device.Plain {
		return x
	}
	out := m.floats(n * c * h * w)
	k.Reorder(out, device.Plain, x, layout, n, c, h, w)
	return out
}

// addToPlanes adds element c of bias to plane c of every image.
func addToPlanes(planes, bias []float32, pixels int) {
	for i := range len(planes) / pixels {
		v := bias[i%len(bias)]
		for p, was := range planes[i*pixels:][:pixels] {
			planes[i*pixels+p] = was + v
		}
	}
}

// each calls f for every row of output pixels of every tap: the tap's row in the
// unfolded matrix starts at column, its input pixels at from with a distance of
// StrideW; only [lo, hi) of them are inside the image.
func each(d device.Conv, f func(column, from, lo, hi int)) {
	oh, ow := d.OutH(), d.OutW()
	for tap := range d.C * d.R * d.S {
		c, r, s := tap/(d.R*d.S), tap/d.S%d.R*max(1, d.DilateH), tap%d.S*max(1, d.DilateW)
		lo := min(ow, max(0, (d.PadW-s+d.StrideW-1)/d.StrideW))
		hi := max(lo, min(ow, (d.W-1+d.PadW-s)/d.StrideW+1))
		if d.W-1+d.PadW-s < 0 {
			hi = lo
		}
		for y := range oh {
			iy := y*d.StrideH + r - d.PadH
			if iy < 0 || iy >= d.H {
				f((tap*oh+y)*ow, 0, 0, 0)
				continue
			}
			f((tap*oh+y)*ow, (c*d.H+iy)*d.W+s-d.PadW, lo, hi)
		}
	}
}

// unfold makes the matrix [taps][pixels] of a plain image, zero outside of it.
func unfold(d device.Conv, columns, image []float32) {
	ow := d.OutW()
	each(d, func(column, from, lo, hi int) {
		line := columns[column:][:ow]
		clear(line[:lo])
		clear(line[hi:])
		for i := lo; i < hi; i++ {
			line[i] = image[from+i*d.StrideW]
		}
	})
}

// fold is unfold's adjoint: it adds the matrix to the image.
func fold(d device.Conv, image, columns []float32) {
	each(d, func(column, from, lo, hi int) {
		for i := lo; i < hi; i++ {
			image[from+i*d.StrideW] += columns[column+i]
		}
	})
}
