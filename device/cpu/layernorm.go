package cpu

import "github.com/gradfusion/gradfusion/device"

// layerNormRows is how many rows a part has; the sums of a part's rows make one
// addend of dscale and dshift.
const layerNormRows = 32

// layerNormTask normalises rows; part i is layerNormRows rows.
type layerNormTask struct {
	set          *kernelSet
	d            device.LayerNorm
	backward     bool
	x, y         tensor
	scale, shift []float32
	mean, invstd []float32
	dy, dx       tensor
	sums         []float32 // [part][dscale, dshift][column]
}

func (k *kernels) LayerNormForward(d device.LayerNorm, y, mean, invstd, x, scale, shift device.Buf) {
	d.RequireForward(y, mean, invstd, x, scale, shift)
	w := k.take()
	w.layerNorm = layerNormTask{
		set: k.set, d: d, x: k.set.tensor(x), y: k.set.tensor(y), scale: scale.F32()[:d.Cols], shift: shift.F32()[:d.Cols],
		mean: mean.F32(), invstd: invstd.F32(),
	}
	k.pool.run(w, &w.layerNorm, (d.Rows+layerNormRows-1)/layerNormRows)
	w.layerNorm = layerNormTask{}
	k.give(w)
}

// LayerNormBackward makes one pass over x and dy, row by row: a row's second
// pass finds it in the first-level cache.
func (k *kernels) LayerNormBackward(d device.LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale device.Buf) {
	d.RequireBackward(dx, dscale, dshift, dy, x, mean, invstd, scale)
	w := k.take()
	parts := (d.Rows + layerNormRows - 1) / layerNormRows
	w.layerNorm = layerNormTask{
		set: k.set, d: d, backward: true, x: k.set.tensor(x), dy: k.set.tensor(dy), dx: k.set.tensor(dx), scale: scale.F32()[:d.Cols],
		mean: mean.F32(), invstd: invstd.F32(), sums: w.room.floats(parts * 2 * d.Cols),
	}
	k.pool.run(w, &w.layerNorm, parts)
	foldParts(dscale.F32()[:d.Cols], w.layerNorm.sums, 2*d.Cols)
	foldParts(dshift.F32()[:d.Cols], w.layerNorm.sums[min(d.Cols, len(w.layerNorm.sums)):], 2*d.Cols)
	w.layerNorm = layerNormTask{}
	k.give(w)
}

// foldParts sets out to the sum of rows of stride floats, in their order.
func foldParts(out, rows []float32, stride int) {
	for j := range out {
		var sum float64
		for at := j; at < len(rows); at += stride {
			sum += float64(rows[at])
		}
		out[j] = float32(sum)
	}
}

func (t *layerNormTask) do(s *scratch, index int) {
	cols := t.d.Cols
	room := s.plane.floats(3 * cols)
	var dscale, dshift []float32
	if t.backward {
		sums := t.sums[index*2*cols:][:2*cols]
		clear(sums)
		dscale, dshift = sums[:cols], sums[cols:]
	}
	for i := index * layerNormRows; i < min((index+1)*layerNormRows, t.d.Rows); i++ {
		lo, hi := i*cols, (i+1)*cols
		if !t.backward {
			y := t.y.place(room[cols:], lo, hi, false)
			t.mean[i], t.invstd[i] = t.set.layerNorm(y, t.x.read(room, lo, hi), t.scale, t.shift, t.d.Epsilon)
			t.y.wrote(y, lo)
			continue
		}
		x, dy := t.x.read(room, lo, hi), t.dy.read(room[cols:], lo, hi)
		if t.dx.missing() {
			t.set.layerNormBackward(nil, dscale, dshift, dy, x, t.scale, t.mean[i], t.invstd[i], false)
			continue
		}
		dx := t.dx.place(room[2*cols:], lo, hi, t.d.Accumulate)
		t.set.layerNormBackward(dx, dscale, dshift, dy, x, t.scale, t.mean[i], t.invstd[i], t.d.Accumulate)
		t.dx.wrote(dx, lo)
	}
}
