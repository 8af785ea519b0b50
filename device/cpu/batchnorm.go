package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

type normPass uint8

const (
	normForward normPass = iota
	normSums
	normOutputs
)

// normTask is one pass of batch normalisation over a Blocked16 tensor.
type normTask struct {
	set *kernelSet
	planes
	pass       normPass
	relu       bool
	accumulate bool
	numbers    []normNumbers // of each block of channels
	sums       []planeSums   // [block of channels][piece]
	// In forward x, residual and y; in backward all but these two's meanings.
	x, y, residual, dy, dx tensor
}

func (t *normTask) do(s *scratch, index int) {
	t.each(index, func(c, at, lo, hi int) { t.piece(s, t.pass, c, at, lo, hi) })
}

// piece makes a pass over the piece [lo, hi) of block c, the at-th of its pieces.
func (t *normTask) piece(s *scratch, pass normPass, c, at, lo, hi int) {
	const piece = planePixels * block
	room := s.plane.floats(5 * piece)
	p := &t.numbers[c]
	x := t.x.read(room, lo, hi)
	if pass == normForward {
		t.forward(room[piece:], x, p, lo, hi)
		return
	}
	dy := t.dy.read(room[piece:], lo, hi)
	var y []float32
	if t.relu {
		y = t.y.read(room[2*piece:], lo, hi)
	}
	if pass == normSums {
		t.set.normBackwardSums(&t.sums[c*t.perBlock()+at], dy, x, y, p)
		return
	}
	dx := t.dx.place(room[3*piece:], lo, hi, t.accumulate)
	if t.residual.missing() {
		t.set.normBackwardOutputs(dx, nil, dy, x, y, p, t.accumulate)
	} else {
		dresidual := t.residual.place(room[4*piece:], lo, hi, false)
		t.set.normBackwardOutputs(dx, dresidual, dy, x, y, p, t.accumulate)
		t.residual.wrote(dresidual, lo)
	}
	t.dx.wrote(dx, lo)
}

func (t *normTask) forward(room, x []float32, p *normNumbers, lo, hi int) {
	var residual []float32
	if !t.residual.missing() {
		residual = t.residual.read(room, lo, hi)
	}
	y := t.y.place(room[planePixels*block:], lo, hi, false)
	t.set.normForward(y, x, residual, p, t.relu)
	t.y.wrote(y, lo)
}

// start fills in the numbers of every channel; shift may be nil.
func (t *normTask) start(w *workspace, c int, mean, invstd, scale, shift []float32) {
	w.norms = grow(w.norms, t.blocks)
	t.numbers = w.norms
	clear(t.numbers)
	for i := range c {
		p, lane := &t.numbers[i/block], i%block
		p.mean[lane] = mean[i]
		p.factor[lane] = scale[i] * invstd[i]
		if shift != nil {
			p.shift[lane] = shift[i]
		}
	}
}

func requireNorm(kernel string, d device.BatchNorm, mean, invstd, scale device.Buf) {
	device.RequireThat(d.Activation <= device.ReLU, kernel, "activation", "is neither Identity nor ReLU")
	device.Require(kernel, "mean", mean, device.F32, d.C)
	device.Require(kernel, "invstd", invstd, device.F32, d.C)
	device.Require(kernel, "scale", scale, device.F32, d.C)
}

func (k *kernels) BatchNormForward(d device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	const name = "BatchNormForward"
	requireNorm(name, d, mean, invstd, scale)
	device.RequireFloat(name, "y", y, d.Len())
	device.RequireFloat(name, "x", x, d.Len())
	device.Require(name, "shift", shift, device.F32, d.C)
	if !residual.IsZero() {
		device.RequireFloat(name, "residual", residual, d.Len())
	}
	if image, ok := asImage(d); ok {
		k.vectorForward(d, image, y, x, mean, invstd, scale, shift, residual)
		return
	}
	w := k.take()
	if d.Layout == device.Plain {
		w.plain = plainTask{d: d, op: plainForward, y: y, x: x, mean: mean, invstd: invstd, scale: scale, shift: shift, residual: residual}
		k.runPlain(w)
		return
	}
	t := &w.norm
	*t = normTask{
		set: k.set, planes: planesOf(d.N, d.C, d.H, d.W), pass: normForward, relu: d.Activation == device.ReLU,
		x: k.set.tensor(x), y: k.set.tensor(y), residual: k.set.tensor(residual),
	}
	t.start(w, d.C, mean.F32(), invstd.F32(), scale.F32(), shift.F32())
	k.pool.run(w, t, t.parts())
	*t = normTask{}
	k.give(w)
}

// BatchNormBackward makes two passes: one for the sums that give dscale and
// dshift, one for dx and dresidual.
func (k *kernels) BatchNormBackward(d device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	const name = "BatchNormBackward"
	requireNorm(name, d, mean, invstd, scale)
	device.RequireFloat(name, "dx", dx, d.Len())
	device.RequireFloat(name, "dy", dy, d.Len())
	device.RequireFloat(name, "x", x, d.Len())
	device.Require(name, "dscale", dscale, device.F32, d.C)
	device.Require(name, "dshift", dshift, device.F32, d.C)
	if d.Activation == device.ReLU {
		device.RequireFloat(name, "y", y, d.Len())
	}
	if !dresidual.IsZero() {
		device.RequireFloat(name, "dresidual", dresidual, d.Len())
	}
	if image, ok := asImage(d); ok {
		k.vectorBackward(d, image, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
		return
	}
	w := k.take()
	if d.Layout == device.Plain {
		w.plain = plainTask{
			d: d, op: plainBackward, dx: dx, residual: dresidual, m1: dscale, m2: dshift, dy: dy, x: x, y: y,
			mean: mean, invstd: invstd, scale: scale, frozen: frozen,
		}
		k.runPlain(w)
		return
	}
	t := &w.norm
	*t = normTask{
		set: k.set, planes: planesOf(d.N, d.C, d.H, d.W), pass: normSums, relu: d.Activation == device.ReLU, accumulate: d.Accumulate,
		dx: k.set.tensor(dx), residual: k.set.tensor(dresidual), dy: k.set.tensor(dy), x: k.set.tensor(x), y: k.set.tensor(y),
	}
	t.start(w, d.C, mean.F32(), invstd.F32(), scale.F32(), nil)
	const size = int(unsafe.Sizeof(planeSums{})) / 4
	n := t.blocks * t.perBlock()
	t.sums = unsafe.Slice((*planeSums)(address(w.room.floats(n*size), 0)), n)
	w.normBlocks = normBlocks{t, d, dscale.F32(), dshift.F32(), invstd.F32(), frozen}
	if w.normBlocks.fit(k.pool.threads) {
		k.pool.run(w, &w.normBlocks, t.blocks)
	} else {
		k.pool.run(w, t, t.parts())
		for c := range t.blocks {
			w.normBlocks.parameters(c)
		}
		t.pass = normOutputs
		k.pool.run(w, t, t.parts())
	}
	*t, w.normBlocks = normTask{}, normBlocks{}
	k.give(w)
}
