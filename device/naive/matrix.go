package naive

import "github.com/gradfusion/gradfusion/device"

func (kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	d.Check()
	an, bn, cn := d.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.RequireFloat("MatMul", "a", a, an)
	device.RequireFloat("MatMul", "b", b, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
	}
	lda, ldb, ldc := d.Strides()
	left, right, out := widened(a), widened(b), c.F32()
	row, down, column, across := lda, 1, 1, ldb // steps of a by i and k, of b by j and k
	if d.TransA {
		row, down = 1, lda
	}
	if d.TransB {
		column, across = ldb, 1
	}
	for i := range d.M {
		for j := range d.N {
			var sum float64
			x, y := i*row, j*column
			for range d.K {
				sum += float64(float64(left[x]) * float64(right[y]))
				x, y = x+down, y+across
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

// widened returns a as float32.
func widened(a device.Buf) []float32 {
	widen := device.F16ToF32
	switch a.Type {
	case device.BF16:
		widen = device.BF16ToF32
	case device.F16:
	default:
		return a.F32()
	}
	out := make([]float32, a.Len)
	for i, v := range a.U16() {
		out[i] = widen(v)
	}
	return out
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
