package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// planes describes a Blocked16 tensor as planes of 16 channels, cut into pieces
// of at most planePixels pixels, and dealt to threads several planes at a time.
type planes struct {
	n, blocks, pixels int
	pieces            int // of one plane
	piece             int // pixels
	perPart           int // planes
}

func planesOf(n, c, h, w int) planes {
	p := planes{n: n, blocks: device.Blocks(c), pixels: h * w}
	p.pieces = (p.pixels + planePixels - 1) / planePixels
	p.piece = (p.pixels + p.pieces - 1) / max(1, p.pieces)
	p.perPart = max(1, elementsPerPart/max(1, p.pixels*block))
	return p
}

// parts returns how many parts all planes make.
func (p *planes) parts() int { return (p.n*p.blocks + p.perPart - 1) / p.perPart }

// each calls f for every piece of part index, with the block of channels, the
// position of the piece among those of its block, and its floats [lo, hi).
func (p *planes) each(index int, f func(c, at, lo, hi int)) {
	for i := index * p.perPart; i < min((index+1)*p.perPart, p.n*p.blocks); i++ {
		n, c := i/p.blocks, i%p.blocks
		for j := range p.pieces {
			lo := i*p.pixels + j*p.piece
			hi := min(lo+p.piece, (i+1)*p.pixels)
			f(c, n*p.pieces+j, lo*block, hi*block)
		}
	}
}

// perBlock returns how many pieces one block of channels has.
func (p *planes) perBlock() int { return p.n * p.pieces }

// count returns the pixels of the piece at a position among those of its block.
func (p *planes) count(at int) int {
	j := at % p.pieces
	return min(p.piece, p.pixels-j*p.piece)
}

// momentsTask takes the moments of every piece.
type momentsTask struct {
	set *kernelSet
	planes
	x   []float32
	out []planeMoments // [block of channels][piece]
}

func (t *momentsTask) do(_ *scratch, index int) {
	t.each(index, func(c, at, lo, hi int) {
		t.set.momentsOf(&t.out[c*t.perBlock()+at], t.x[lo:hi])
	})
}

// sum returns the sum of channel c's elements, piece after piece in float64.
func (t *momentsTask) sum(c int) float64 {
	var sum float64
	lane := c % block
	for i := range t.perBlock() {
		m := &t.out[c/block*t.perBlock()+i]
		sum += float64(float64(m.mean[lane])*float64(t.count(i))) + float64(m.first[lane])
	}
	return sum
}

// about returns the sum of (x-mean)^2 of channel c: of each piece about its own
// mean, and of the pieces' means about mean (Chan, Golub and LeVeque, 1979).
func (t *momentsTask) about(c int, mean float64) float64 {
	var sum float64
	lane := c % block
	for i := range t.perBlock() {
		m := &t.out[c/block*t.perBlock()+i]
		n, first := float64(t.count(i)), float64(m.first[lane])
		offset := float64(m.mean[lane]) - mean
		// sum (x-guess+offset)^2, with the guess's own error in first.
		sum += float64(m.second[lane]) + float64(offset*(float64(2*first)+float64(n*offset)))
	}
	return max(0, sum)
}

// takeMoments fills in w.moments for x.
func (k *kernels) takeMoments(w *workspace, p planes, x []float32) *momentsTask {
	const size = int(unsafe.Sizeof(planeMoments{})) / 4
	t := &w.moments
	n := p.blocks * p.perBlock()
	*t = momentsTask{set: k.set, planes: p, x: x}
	t.out = unsafe.Slice((*planeMoments)(address(w.sums.floats(n*size), 0)), n)
	k.pool.run(w, t, p.parts())
	return t
}

func (k *kernels) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	device.Require("Moments", "mean", mean, device.F64, d.C)
	device.Require("Moments", "m2", m2, device.F64, d.C)
	device.Require("Moments", "x", x, device.F32, d.Len())
	w := k.take()
	if d.Layout == device.Plain {
		w.plain = plainTask{d: d, op: plainMoments, x: x, m1: mean, m2: m2}
		k.runPlain(w)
		return
	}
	t := k.takeMoments(w, planesOf(d.N, d.C, d.H, d.W), x.F32())
	for c := range d.C {
		average := t.sum(c) / float64(d.N*d.H*d.W)
		mean.F64()[c], m2.F64()[c] = average, t.about(c, average)
	}
	*t = momentsTask{}
	k.give(w)
}

func (k *kernels) SumChannels(out, x device.Buf, n, c, h, wide int, accumulate bool) {
	device.Require("SumChannels", "out", out, device.F32, c)
	device.Require("SumChannels", "x", x, device.F32, device.ImageLen(device.Blocked16, n, c, h, wide))
	w := k.take()
	t := k.takeMoments(w, planesOf(n, c, h, wide), x.F32())
	for i, old := range out.F32()[:c] {
		v := float32(t.sum(i))
		if accumulate {
			v += old
		}
		out.F32()[i] = v
	}
	*t = momentsTask{}
	k.give(w)
}
