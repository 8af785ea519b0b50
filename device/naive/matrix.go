package naive

import "github.com/gradfusion/gradfusion/device"

func (kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	d.Check()
	an, bn, cn := d.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.Require("MatMul", "a", a, device.F32, an)
	device.Require("MatMul", "b", b, device.F32, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
	}
	lda, ldb, ldc := d.Strides()
	left, right, out := a.F32(), b.F32(), c.F32()
	for i := range d.M {
		for j := range d.N {
			var sum float64
			for k := range d.K {
				x, y := i*lda+k, k*ldb+j
				if d.TransA {
					x = k*lda + i
				}
				if d.TransB {
					y = j*ldb + k
				}
				sum += float64(float64(left[x]) * float64(right[y]))
			}
			// Accumulate adds before the bias and the activation.
			if d.Accumulate {
				sum += float64(out[i*ldc+j])
			}
			if !bias.IsZero() {
				sum += float64(bias.F32()[j])
			}
			out[i*ldc+j] = activate(d.Activation, float32(sum))
		}
	}
}

func (kernels) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	device.Require("SumRows", "out", out, device.F32, cols)
	device.Require("SumRows", "a", a, device.F32, rows*cols)
	for j := range cols {
		var sum float64
		for i := range rows {
			sum += float64(a.F32()[i*cols+j])
		}
		put(out.F32(), j, float32(sum), accumulate)
	}
}
