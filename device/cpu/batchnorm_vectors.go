package cpu

import "github.com/gradfusion/gradfusion/device"

// vectorTensors is memory for the rows of matrices in the Blocked16 layout, as
// one image with a pixel for each row: what normalises images then normalises
// columns. Moving rows there and back costs less than walking down columns.
type vectorTensors struct{ x, y, residual, dy, dx memory }

// asImage describes rows of vectors as one image, and whether they are that.
func asImage(d device.BatchNorm) (image device.BatchNorm, ok bool) {
	ok = d.Layout == device.Plain && d.H == 1 && d.W == 1 && d.N > 1
	return device.BatchNorm{N: 1, C: d.C, H: d.N, W: 1, Layout: device.Blocked16, Activation: d.Activation, Accumulate: d.Accumulate}, ok
}

// gather brings rows of vectors into an image; the zero Buf stays so.
func (k *kernels) gather(m *memory, d device.BatchNorm, rows device.Buf) device.Buf {
	if rows.IsZero() {
		return rows
	}
	next := d.N * block
	out, src := m.floats(device.Blocks(d.C)*next), rows.F32()
	whole := d.C / block
	k.set.lines(out, src, d.C, next, d.N, whole)
	if width := d.C % block; width > 0 {
		for i := range d.N {
			line := out[whole*next+i*block:][:block]
			clear(line[copy(line, src[i*d.C+whole*block:][:width]):])
		}
	}
	return device.FromF32(out)
}

// room is gather for a result that is stored.
func (m *memory) room(d device.BatchNorm, rows device.Buf) device.Buf {
	if rows.IsZero() {
		return rows
	}
	return device.FromF32(m.floats(device.Blocks(d.C) * d.N * block))
}

// scatterRows brings an image back into rows.
func scatterRows(d device.BatchNorm, rows, image device.Buf) {
	if rows.IsZero() {
		return
	}
	dst, src := rows.F32(), image.F32()
	for i := range d.N {
		row := dst[i*d.C:][:d.C]
		for c := 0; len(row) > 0; c++ {
			line := src[(c*d.N+i)*block:][:block]
			if len(row) < block {
				copy(row, line)
				break
			}
			*(*[block]float32)(row) = *(*[block]float32)(line)
			row = row[block:]
		}
	}
}

func (k *kernels) vectorMoments(d, image device.BatchNorm, mean, m2, x device.Buf) {
	w := k.take()
	k.Moments(image, mean, m2, k.gather(&w.vectorTensors.x, d, x))
	k.give(w)
}

func (k *kernels) vectorForward(d, image device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	w := k.take()
	m := &w.vectorTensors
	out := m.y.room(d, y)
	k.BatchNormForward(image, out, k.gather(&m.x, d, x), mean, invstd, scale, shift, k.gather(&m.residual, d, residual))
	scatterRows(d, y, out)
	k.give(w)
}

func (k *kernels) vectorBackward(d, image device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	w := k.take()
	m := &w.vectorTensors
	if d.Activation == device.Identity {
		y = device.Buf{}
	}
	gradient, rest := m.dx.room(d, dx), m.residual.room(d, dresidual)
	if d.Accumulate {
		gradient = k.gather(&m.dx, d, dx)
	}
	k.BatchNormBackward(image, gradient, rest, dscale, dshift, k.gather(&m.dy, d, dy), k.gather(&m.x, d, x), k.gather(&m.y, d, y), mean, invstd, scale, frozen)
	scatterRows(d, dx, gradient)
	scatterRows(d, dresidual, rest)
	k.give(w)
}
