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

// ofBlock calls f for every piece of block c, as each does.
func (p *planes) ofBlock(c int, f func(at, lo, hi int)) {
	for n := range p.n {
		for j := range p.pieces {
			lo := (n*p.blocks+c)*p.pixels + j*p.piece
			hi := min(lo+p.piece, (n*p.blocks+c+1)*p.pixels)
			f(n*p.pieces+j, lo*block, hi*block)
		}
	}
}

// perBlock returns how many pieces one block of channels has.
func (p *planes) perBlock() int { return p.n * p.pieces }

// count returns the pixels of the piece at a position among those of its block.
func (p *planes) count(at int) int {
	if p.pieces == 1 {
		return p.piece
	}
	return min(p.piece, p.pixels-at%p.pieces*p.piece)
}

// momentsTask takes the moments of every piece.
type momentsTask struct {
	set *kernelSet
	planes
	x   tensor
	out []planeMoments // [block of channels][piece]
}

func (t *momentsTask) do(s *scratch, index int) {
	room := s.plane.floats(planePixels * block)
	t.each(index, func(c, at, lo, hi int) {
		t.set.momentsOf(&t.out[c*t.perBlock()+at], t.x.read(room, lo, hi))
	})
}

// piecesOf returns the moments of the pieces of block c.
func (t *momentsTask) piecesOf(c int) []planeMoments { return t.out[c*t.perBlock():][:t.perBlock()] }

// sums returns the sums of the elements of the channels of block c, piece after
// piece in float64.
func (t *momentsTask) sums(c int) (sums [block]float64) {
	pieces := t.piecesOf(c)
	for i := range pieces {
		m, n := &pieces[i], float64(t.count(i))
		for lane := range sums {
			sums[lane] += float64(float64(m.mean[lane])*n) + float64(m.first[lane])
		}
	}
	return sums
}

// about returns the sums of (x-mean)^2 of the channels of block c: of each piece
// about its own mean, and of the pieces' means about mean (Chan, Golub and
// LeVeque, 1979).
func (t *momentsTask) about(c int, mean *[block]float64) (sums [block]float64) {
	pieces := t.piecesOf(c)
	for i := range pieces {
		m, n := &pieces[i], float64(t.count(i))
		for lane := range sums {
			offset := float64(m.mean[lane]) - mean[lane]
			// sum (x-guess+offset)^2, with the guess's own error in first.
			sums[lane] += float64(m.second[lane]) + float64(offset*(float64(2*float64(m.first[lane]))+float64(n*offset)))
		}
	}
	return sums
}

// takeMoments fills in w.moments for x.
func (k *kernels) takeMoments(w *workspace, p planes, x device.Buf) *momentsTask {
	const size = int(unsafe.Sizeof(planeMoments{})) / 4
	t := &w.moments
	n := p.blocks * p.perBlock()
	*t = momentsTask{set: k.set, planes: p, x: k.set.tensor(x)}
	t.out = unsafe.Slice((*planeMoments)(address(w.room.floats(n*size), 0)), n)
	k.pool.run(w, t, p.parts())
	return t
}

func (k *kernels) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	device.Require("Moments", "mean", mean, device.F64, d.C)
	device.Require("Moments", "m2", m2, device.F64, d.C)
	device.RequireFloat("Moments", "x", x, d.Len())
	if image, ok := asImage(d); ok {
		k.vectorMoments(d, image, mean, m2, x)
		return
	}
	w := k.take()
	if d.Layout == device.Plain {
		w.plain = plainTask{d: d, op: plainMoments, x: x, m1: mean, m2: m2}
		k.runPlain(w)
		return
	}
	t := k.takeMoments(w, planesOf(d.N, d.C, d.H, d.W), x)
	for c := range t.blocks {
		average := t.sums(c)
		for lane := range average {
			average[lane] /= float64(d.N * d.H * d.W)
		}
		about := t.about(c, &average)
		copy(mean.F64()[c*block:d.C], average[:])
		for i := c * block; i < min(d.C, (c+1)*block); i++ {
			m2.F64()[i] = max(0, about[i%block])
		}
	}
	*t = momentsTask{}
	k.give(w)
}

func (k *kernels) SumChannels(out, x device.Buf, n, c, h, wide int, accumulate bool) {
	device.Require("SumChannels", "out", out, device.F32, c)
	device.RequireFloat("SumChannels", "x", x, device.ImageLen(device.Blocked16, n, c, h, wide))
	w := k.take()
	t := k.takeMoments(w, planesOf(n, c, h, wide), x)
	dst := out.F32()[:c]
	var sums [block]float64
	for i := range dst {
		if i%block == 0 {
			sums = t.sums(i / block)
		}
		v := float32(sums[i%block])
		if accumulate {
			v += dst[i]
		}
		dst[i] = v
	}
	*t = momentsTask{}
	k.give(w)
}
