package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// depthwiseTask computes phases of a convolution whose channels do not mix. It
// runs on tiles of lanes, which multiply line by line. Part i is a plane: 16
// channels of one image.
type depthwiseTask struct {
	convTask
	inPlane int // floats
	planes  int // of an image
}

// planeOf returns the convolution of 16 channels.
func planeOf(d device.Conv) device.Conv {
	d.C, d.K = 1, 1
	return d
}

func (k *kernels) depthwiseForward(d device.Conv, y, x, weights, bias device.Buf) {
	w := k.take()
	t := &w.depthwise
	t.convTask = convTask{set: k.set, in: k.set.tensor(x), out: k.set.tensor(y), image: xPadded(planeOf(d)), outPlane: d.OutH() * d.OutW() * block}
	t.inPlane, t.planes = d.H*d.W*block, device.Blocks(d.C)
	t.forwardPhase(w, planeOf(d))
	w.taps = grow(w.taps, d.R*d.S)
	for i := range w.taps {
		w.taps[i].at = i * block * block
	}
	if !bias.IsZero() {
		t.bias = padBias(&w.bias, bias.F32()[:d.K])
	}
	k.runDepthwise(w, d, weights.F32())
}

func (k *kernels) depthwiseBackwardInput(d device.Conv, dx, dy, weights device.Buf) {
	w := k.take()
	t := &w.depthwise
	t.convTask = convTask{set: k.set, in: k.set.tensor(dy), out: k.set.tensor(dx), image: dyPadded(planeOf(d)), outPlane: d.H * d.W * block}
	t.inPlane, t.planes = d.OutH()*d.OutW()*block, device.Blocks(d.C)
	if d.Accumulate {
		t.flags = flagAccumulate
	}
	t.backwardPhases(w, planeOf(d))
	k.runDepthwise(w, d, weights.F32())
}

// runDepthwise packs the weights into [plane][tap][16], the taps in the order of
// w.taps, and runs w.depthwise.
func (k *kernels) runDepthwise(w *workspace, d device.Conv, weights []float32) {
	t := &w.depthwise
	taps := d.R * d.S
	t.panelLen = taps * block
	t.weights = w.room.floats(t.planes * t.panelLen)
	clear(t.weights)
	for c := range d.C {
		lines := t.weights[c/block*t.panelLen+c%block:]
		for i, v := range weights[c*taps:][:taps] {
			lines[w.taps[i].at/block] = v
		}
	}
	k.pool.run(w, t, d.N*t.planes)
	*t = depthwiseTask{}
	k.give(w)
}

func (t *depthwiseTask) do(s *scratch, index int) {
	in := t.in.floats[index*t.inPlane:][:t.inPlane]
	if !t.image.bare() {
		inside := s.image.floats(t.image.planeLen())
		t.image.fill(inside, t.in, index*t.inPlane, 1)
		in = inside
	}
	plane := index % t.planes
	for i := range t.phases {
		ph := &t.phases[i]
		s.tile = tile{
			a: address(in, 0), b: address(t.weights, plane*t.panelLen+ph.panelAt/block), c: address(t.out.floats, index*t.outPlane),
			steps: unsafe.Pointer(unsafe.SliceData(ph.steps)), singles: len(ph.steps), flags: t.flags,
		}
		if t.bias != nil {
			s.tile.bias = address(t.bias, plane*block)
		}
		runTile(t.set.apart, &s.tile, ph.rows)
	}
	s.tile = tile{}
}

// depthwiseGradient computes the gradient of the weights: rows are taps, steps
// are pixels. Part i is a plane of the channels and a run of images, with sums
// of its own; their number follows from the shape.
type depthwiseGradient struct {
	gradientTask
	planes int
}

func (k *kernels) depthwiseBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	w := k.take()
	t := &w.depthwiseGradient
	t.gradientTask = gradientTask{
		set: k.set, d: planeOf(d), x: k.set.tensor(x), dy: k.set.tensor(dy), image: xPadded(planeOf(d)), pixels: d.OutH() * d.OutW(),
		groups: min(d.N, gradientLeast), perPart: 1, joined: 1,
	}
	t.planes = device.Blocks(d.C)
	taps := d.R * d.S
	t.tables(w)
	for i := range taps { // one row a tap, not one a channel
		t.rows[i] = row{t.rows[i*block].a, int64(i * block * 4)}
	}
	t.rows = t.rows[:taps]
	t.partialOf = taps * block
	t.partial = w.room.floats(t.groups * t.planes * t.partialOf)
	k.pool.run(w, t, t.groups*t.planes)
	for p := range t.planes {
		sums := t.partial[p*t.partialOf:][:t.partialOf]
		for g := 1; g < t.groups; g++ {
			k.set.add(sums, sums, t.partial[(g*t.planes+p)*t.partialOf:][:t.partialOf])
		}
		k.set.storeLines(dw.F32()[p*block*taps:], sums, taps, taps, min(block, d.C-p*block), d.Accumulate)
	}
	*t = depthwiseGradient{}
	k.give(w)
}

func (t *depthwiseGradient) do(s *scratch, index int) {
	g, plane := index/t.planes, index%t.planes
	planeLen := t.d.H * t.d.W * block
	first := g * t.d.N / t.groups
	for n := first; n < (g+1)*t.d.N/t.groups; n++ {
		x := t.x.floats[(n*t.planes+plane)*planeLen:][:planeLen]
		if !t.image.bare() {
			inside := s.image.floats(t.image.planeLen())
			t.image.fill(inside, t.x, (n*t.planes+plane)*planeLen, 1)
			x = inside
		}
		s.tile = tile{
			a: address(x, 0), b: address(t.dy.floats, (n*t.planes+plane)*t.pixels*block), c: address(t.partial, index*t.partialOf),
			steps: unsafe.Pointer(unsafe.SliceData(t.steps)), singles: t.pixels,
		}
		if n > first {
			s.tile.flags = flagAccumulate
		}
		runTile(t.set.apart, &s.tile, t.rows)
	}
	s.tile = tile{}
}
