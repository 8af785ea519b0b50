package naive

import "github.com/gradfusion/gradfusion/device"

func normImage(d device.BatchNorm) image { return image{d.Layout, d.C, d.H, d.W} }

// each calls f with the offset of every element of channel c.
func (t image) each(n, c int, f func(i int)) {
	for i := range n {
		for y := range t.h {
			for x := range t.w {
				f(t.at(i, c, y, x))
			}
		}
	}
}

func (kernels) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	device.Require("Moments", "mean", mean, device.F64, d.C)
	device.Require("Moments", "m2", m2, device.F64, d.C)
	device.Require("Moments", "x", x, device.F32, d.Len())
	t, in := normImage(d), x.F32()
	for c := range d.C {
		var sum, squares float64
		t.each(d.N, c, func(i int) { sum += float64(in[i]) })
		average := sum / float64(d.N*d.H*d.W)
		t.each(d.N, c, func(i int) {
			diff := float64(in[i]) - average
			squares += float64(diff * diff)
		})
		mean.F64()[c], m2.F64()[c] = average, squares
	}
}

func (kernels) BatchNormForward(d device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	device.Require("BatchNormForward", "y", y, device.F32, d.Len())
	device.Require("BatchNormForward", "x", x, device.F32, d.Len())
	device.Require("BatchNormForward", "mean", mean, device.F32, d.C)
	device.Require("BatchNormForward", "invstd", invstd, device.F32, d.C)
	device.Require("BatchNormForward", "scale", scale, device.F32, d.C)
	device.Require("BatchNormForward", "shift", shift, device.F32, d.C)
	if !residual.IsZero() {
		device.Require("BatchNormForward", "residual", residual, device.F32, d.Len())
	}
	t, in, out := normImage(d), x.F32(), y.F32()
	for c := range d.C {
		factor := scale.F32()[c] * invstd.F32()[c]
		t.each(d.N, c, func(i int) {
			v := float32((in[i]-mean.F32()[c])*factor) + shift.F32()[c]
			if !residual.IsZero() {
				v += residual.F32()[i]
			}
			out[i] = activate(d.Activation, v)
		})
	}
	t.zeroPadding(out, d.N)
}

func (kernels) BatchNormBackward(d device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	const name = "BatchNormBackward"
	device.Require(name, "dy", dy, device.F32, d.Len())
	device.Require(name, "x", x, device.F32, d.Len())
	device.Require(name, "mean", mean, device.F32, d.C)
	device.Require(name, "invstd", invstd, device.F32, d.C)
	device.Require(name, "scale", scale, device.F32, d.C)
	device.Require(name, "dscale", dscale, device.F32, d.C)
	device.Require(name, "dshift", dshift, device.F32, d.C)
	device.Require(name, "dx", dx, device.F32, d.Len())
	if d.Activation != device.Identity {
		device.Require(name, "y", y, device.F32, d.Len())
	}
	if !dresidual.IsZero() {
		device.Require(name, "dresidual", dresidual, device.F32, d.Len())
	}
	t, in := normImage(d), x.F32()
	count := float64(d.N * d.H * d.W)
	through := func(i int) float32 {
		if d.Activation == device.Identity {
			return dy.F32()[i]
		}
		return activateBackward(d.Activation, dy.F32()[i], y.F32()[i])
	}
	for c := range d.C {
		m, inv := float64(mean.F32()[c]), float64(invstd.F32()[c])
		normal := func(i int) float64 { return (float64(in[i]) - m) * inv }
		var sum, product float64
		t.each(d.N, c, func(i int) {
			sum += float64(through(i))
			product += float64(float64(through(i)) * normal(i))
		})
		dscale.F32()[c], dshift.F32()[c] = float32(product), float32(sum)
		factor := float64(scale.F32()[c]) * inv
		t.each(d.N, c, func(i int) {
			g := through(i)
			v := float64(g)
			if !frozen {
				v -= sum/count + normal(i)*product/count
			}
			if !dresidual.IsZero() {
				dresidual.F32()[i] = g
			}
			put(dx.F32(), i, float32(factor*v), d.Accumulate)
		})
	}
	t.zeroPadding(dx.F32(), d.N)
	if !dresidual.IsZero() {
		t.zeroPadding(dresidual.F32(), d.N)
	}
}
