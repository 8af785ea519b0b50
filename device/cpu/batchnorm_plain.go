package cpu

import "github.com/gradfusion/gradfusion/device"

type plainOp uint8

const (
	plainMoments plainOp = iota
	plainForward
	plainBackward
)

// plainTask is batch normalisation of plain images, channel by channel. Part c is
// channel c. Networks have no such images; vectors are normalised as one image.
type plainTask struct {
	d                          device.BatchNorm
	op                         plainOp
	frozen                     bool
	x, y, dy, dx, residual     device.Buf
	mean, invstd, scale, shift device.Buf
	m1, m2                     device.Buf // mean and m2, or dscale and dshift
}

func (k *kernels) runPlain(w *workspace) {
	k.pool.run(w, &w.plain, w.plain.d.C)
	w.plain = plainTask{}
	k.give(w)
}

func (t *plainTask) do(_ *scratch, c int) {
	switch t.op {
	case plainMoments:
		t.moments(c)
	case plainForward:
		t.forward(c)
	case plainBackward:
		t.backward(c)
	}
}

// each calls f with the offset of every element of channel c.
func (t *plainTask) each(c int, f func(i int)) {
	pixels := t.d.H * t.d.W
	for n := range t.d.N {
		at := (n*t.d.C + c) * pixels
		for i := range pixels {
			f(at + i)
		}
	}
}

func (t *plainTask) moments(c int) {
	x := t.x.F32()
	var sum, squares float64
	t.each(c, func(i int) { sum += float64(x[i]) })
	mean := sum / float64(t.d.N*t.d.H*t.d.W)
	t.each(c, func(i int) {
		v := float64(x[i]) - mean
		squares += float64(v * v)
	})
	t.m1.F64()[c], t.m2.F64()[c] = mean, squares
}

func (t *plainTask) forward(c int) {
	x, y, residual := t.x.F32(), t.y.F32(), t.residual.F32()
	mean, shift := t.mean.F32()[c], t.shift.F32()[c]
	factor := t.scale.F32()[c] * t.invstd.F32()[c]
	t.each(c, func(i int) {
		v := float32((x[i]-mean)*factor) + shift
		if residual != nil {
			v += residual[i]
		}
		if t.d.Activation == device.ReLU && v < 0 {
			v = 0
		}
		y[i] = v
	})
}

func (t *plainTask) backward(c int) {
	x, y, dy, dx, dresidual := t.x.F32(), t.y.F32(), t.dy.F32(), t.dx.F32(), t.residual.F32()
	mean, inverse := t.mean.F32()[c], float64(t.invstd.F32()[c])
	through := func(i int) float32 {
		if t.d.Activation == device.ReLU && y[i] <= 0 {
			return 0
		}
		return dy[i]
	}
	var sum, product float64
	t.each(c, func(i int) {
		g := float64(through(i))
		sum += g
		product += float64(g * float64(x[i]-mean))
	})
	t.m1.F32()[c], t.m2.F32()[c] = float32(product*inverse), float32(sum)
	count := float64(t.d.N * t.d.H * t.d.W)
	factor := t.scale.F32()[c] * t.invstd.F32()[c]
	offset, slope := float32(sum/count), float32(product*inverse*inverse/count)
	if t.frozen {
		offset, slope = 0, 0
	}
	t.each(c, func(i int) {
		g := through(i)
		if dresidual != nil {
			dresidual[i] = g
		}
		v := float32(factor * ((g - offset) - float32((x[i]-mean)*slope)))
		if t.d.Accumulate {
			v += dx[i]
		}
		dx[i] = v
	})
}
