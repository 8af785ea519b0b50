package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// winogradGradient computes the gradient of the weights: for each position, the
// product of inputs and gradients is summed over tiles and then transformed.
// Part g is a group of images with sums of its own; the number of groups follows
// from the shape, because it decides the bits.
type winogradGradient struct {
	winogradTiles
	set      *kernelSet
	x, dy    tensor
	dw       []float32
	partial  []float32 // [group][block of K][position][C][16 of K]
	groups   int
	perBlock int       // rows of tiles
	perChunk int       // blocks of C of one product
	v, g     []float32 // transformed images, where all parts share them
	first    int       // row of tiles in v and g
	rows     []row
	steps    []int64
}

// winogradSums bounds the bytes of all partial sums.
const winogradSums = 32 << 20

func (k *kernels) winogradBackwardWeight(form *winogradForm, d device.Conv, dw, x, dy device.Buf) {
	w := k.take()
	t := &w.winogradGradient
	*t = winogradGradient{winogradTiles: newWinogradTiles(form, d), set: k.set, x: k.set.tensor(x), dy: k.set.tensor(dy), dw: dw.F32()}
	switch {
	case t.byPositions():
		k.runGradientPositions(w)
	case t.isWide() && t.wideInParts():
		k.runWideGradientParts(w)
	case t.isWide():
		k.runWideGradient(w)
	default:
		k.runGradient(w)
	}
	*t = winogradGradient{}
	k.give(w)
}

func (k *kernels) runGradient(w *workspace) {
	t := &w.winogradGradient
	t.perChunk = t.blocksC
	t.groups = min(t.d.N, max(2, min(gradientLeast/2, winogradSums/(4*t.groupLen()))))
	tiles := max(winogradTilesLeast, winogradBytes/(t.positions*block*4*max(t.blocksC, t.blocksK)))
	t.perBlock = max(1, min(tiles/t.wide, (t.d.N+t.groups-1)/t.groups*t.high))
	t.tables(w)
	t.partial = w.room.floats(t.groups * t.groupLen())
	k.pool.run(w, t, t.groups)
	w.winogradStore = winogradStore{t}
	k.pool.run(w, &w.winogradStore, t.blocksK)
	w.winogradStore = winogradStore{}
}

// sumsSlab returns the floats of a position of 16 output channels.
func (t *winogradGradient) sumsSlab() int { return slabLen(t.perChunk, block) }

// sumsLen returns the floats of 16 output channels of a group.
func (t *winogradGradient) sumsLen() int { return t.positions * t.sumsSlab() }

func (t *winogradGradient) groupLen() int { return t.blocksK * t.sumsLen() }

func (t *winogradGradient) tables(w *workspace) {
	tiles := t.perBlock * t.wide
	w.rows, w.steps = grow(w.rows, t.perChunk*block), grow(w.steps, tiles)
	for i := range w.rows {
		w.rows[i] = row{int64((i/block*tiles*block + i%block) * 4), int64(i * block * 4)}
	}
	for i := range w.steps {
		w.steps[i] = int64(i * block * 4)
	}
	t.rows, t.steps = w.rows, w.steps
}

func (t *winogradGradient) do(s *scratch, g int) {
	s.winograd.start(&t.winogradTiles)
	first, end := g*t.d.N/t.groups*t.high, (g+1)*t.d.N/t.groups*t.high
	for r := first; r < end; r += t.perBlock {
		t.block(s, t.partial[g*t.groupLen():], r, min(r+t.perBlock, end), r > first)
	}
}

// block adds the products of rows [from, to) of tiles to the sums.
func (t *winogradGradient) block(s *scratch, sums []float32, from, to int, accumulate bool) {
	tiles := t.perBlock * t.wide
	vSlab, gSlab := slabLen(t.blocksC, tiles), slabLen(t.blocksK, tiles)
	v, g := s.winograd.v.floats(t.positions*vSlab), s.winograd.m.floats(t.positions*gSlab)
	for c := range t.blocksC + t.blocksK {
		for r := from; r < to; r++ {
			t.transform(s, v, g, c, r, r-from)
		}
	}
	t.multiply(s, sums, v, g, t.blocksK, (to-from)*t.wide, t.rows, accumulate)
}

// transform brings row r of tiles of block c of the channels of x, and after
// those of dy, to where row "at" of a block of tiles lies.
func (t *winogradGradient) transform(s *scratch, v, g []float32, c, r, at int) {
	tiles := t.perBlock * t.wide
	if c < t.blocksC {
		t.transformBlock(s, v[(c*tiles+at*t.wide)*block:], c, r, slabLen(t.blocksC, tiles))
		return
	}
	t.transformBlock(s, g[((c-t.blocksC)*tiles+at*t.wide)*block:], c, r, slabLen(t.blocksK, tiles))
}

// transformBlock transforms row r of tiles of block c of the channels of x, and
// after those of dy, to dst, whose positions are slab floats apart.
func (t *winogradGradient) transformBlock(s *scratch, dst []float32, c, r, slab int) {
	n := r / t.high
	if c < t.blocksC {
		t.fromData(&s.winograd, dst, &t.x, (n*t.blocksC+c)*t.d.H*t.d.W*block, r%t.high, slab)
		return
	}
	t.fromGradient(&s.winograd, dst, &t.dy, (n*t.blocksK+c-t.blocksC)*t.d.OutH()*t.d.OutW()*block, r%t.high, slab)
}

// multiply computes or adds to the sums of panels of 16 output channels.
func (t *winogradGradient) multiply(s *scratch, sums, v, g []float32, panels, count int, rows []row, accumulate bool) {
	tiles := t.perBlock * t.wide
	s.tile = tile{
		steps: unsafe.Pointer(unsafe.SliceData(t.steps)), singles: count,
		panels: panels, strideB: tiles * block * 4, strideC: t.sumsLen() * 4,
	}
	if accumulate {
		s.tile.flags = flagAccumulate
	}
	vSlab, gSlab := slabLen(t.blocksC, tiles), slabLen(t.blocksK, tiles)
	for p := range t.positions {
		s.tile.a, s.tile.b, s.tile.c = address(v, p*vSlab), address(g, p*gSlab), address(sums, p*t.sumsSlab())
		runTile(t.set.tile, &s.tile, rows)
	}
	s.tile = tile{}
}

// winogradStore adds the sums of the groups from the first to the last,
// transforms them and stores them in the order of the weights. Part k is 16
// output channels.
type winogradStore struct{ *winogradGradient }

func (t *winogradStore) do(s *scratch, k int) {
	sums := t.partial[k*t.sumsLen():][:t.sumsLen()]
	for g := 1; g < t.groups; g++ {
		t.set.add(sums, sums, t.partial[g*t.groupLen()+k*t.sumsLen():][:t.sumsLen()])
	}
	t.store(s, sums, k, 0, t.blocksC)
}

// store transforms the sums of count blocks of input channels and 16 output
// channels.
func (t *winogradGradient) store(s *scratch, sums []float32, k, from, count int) {
	const taps = 9
	temporary := s.winograd.temporary.floats(weightTemporary)
	lines := s.plane.floats(panelBatch * taps * block)
	depth := t.d.C * taps
	end := min((from+count)*block, t.d.C)
	for c := from * block; c < end; c += panelBatch {
		n := min(panelBatch, end-c)
		t.form.weightsGradient(&lines[0], &sums[(c-from*block)*block], &temporary[0], t.sumsSlab()*4, n)
		t.set.storeLines(t.dw[k*block*depth+c*taps:], lines, depth, n*taps, min(block, t.d.K-k*block), t.d.Accumulate)
	}
}
