package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

func (kernels) LayerNormForward(d device.LayerNorm, y, mean, invstd, x, scale, shift device.Buf) {
	d.RequireForward(y, mean, invstd, x, scale, shift)
	for i := range d.Rows {
		in, out := x.F32()[i*d.Cols:][:d.Cols], y.F32()[i*d.Cols:][:d.Cols]
		var sum, squares float64
		for _, v := range in {
			sum += float64(v)
		}
		average := sum / float64(d.Cols)
		for _, v := range in {
			squares += float64((float64(v) - average) * (float64(v) - average))
		}
		inverse := 1 / math.Sqrt(squares/float64(d.Cols)+float64(d.Epsilon))
		for j, v := range in {
			out[j] = float32(float64((float64(v)-average)*inverse*float64(scale.F32()[j])) + float64(shift.F32()[j]))
		}
		mean.F32()[i], invstd.F32()[i] = float32(average), float32(inverse)
	}
}

func (kernels) LayerNormBackward(d device.LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale device.Buf) {
	d.RequireBackward(dx, dscale, dshift, dy, x, mean, invstd, scale)
	scales, shifts := make([]float64, d.Cols), make([]float64, d.Cols)
	for i := range d.Rows {
		m, inverse := float64(mean.F32()[i]), float64(invstd.F32()[i])
		in, g := x.F32()[i*d.Cols:][:d.Cols], dy.F32()[i*d.Cols:][:d.Cols]
		var sum, product float64
		for j := range d.Cols {
			normal := (float64(in[j]) - m) * inverse
			scales[j] += float64(float64(g[j]) * normal)
			shifts[j] += float64(g[j])
			sum += float64(float64(g[j]) * float64(scale.F32()[j]))
			product += float64(float64(g[j]) * float64(scale.F32()[j]) * normal)
		}
		if dx.IsZero() {
			continue
		}
		for j := range d.Cols {
			normal := (float64(in[j]) - m) * inverse
			v := float64(float64(g[j])*float64(scale.F32()[j])) - (sum+float64(normal*product))/float64(d.Cols)
			put(dx.F32(), i*d.Cols+j, float32(v*inverse), d.Accumulate)
		}
	}
	for j := range d.Cols {
		dscale.F32()[j], dshift.F32()[j] = float32(scales[j]), float32(shifts[j])
	}
}

func (kernels) EmbeddingForward(d device.Embedding, y, table, ids device.Buf) {
	d.RequireForward(y, table, ids)
	for i := range d.Rows {
		copy(y.F32()[i*d.Width:][:d.Width], table.F32()[int(ids.I32()[i])*d.Width:])
	}
}

func (kernels) EmbeddingBackward(d device.Embedding, dtable, dy, ids device.Buf) {
	d.RequireBackward(dtable, dy, ids)
	sums := make([]float64, d.Width)
	for v := range d.Count {
		clear(sums)
		for i := range d.Rows {
			if int(ids.I32()[i]) == v {
				for j := range sums {
					sums[j] += float64(dy.F32()[i*d.Width+j])
				}
			}
		}
		for j, sum := range sums {
			put(dtable.F32(), v*d.Width+j, float32(sum), d.Accumulate)
		}
	}
}
