package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// winogradTask computes y, or with backward dx, by blocks of tiles: their
// positions (a product of tiles x depth with depth x 16 for every position and
// panel) lie in the second-level cache between the transforms. Part i is a run
// of rows of tiles.
type winogradTask struct {
	winogradTiles
	set             *kernelSet
	backward        bool
	in, out         tensor
	bias            []float32 // whole panels
	depth, panels   int       // blocks of channels of in and out
	inPlane         int       // floats
	outPlane        int
	perPart         int // rows of tiles
	perBlock        int // rows of tiles between transforms
	perGroup        int // panels between transforms
	perChunk        int // blocks of depth of one product
	weights         tensor
	u               []float32 // transformed weights, and
	v               []float32 // transformed inputs, for all parts
	first           int       // row of tiles in v
	rows            []row
	steps           []int64
	lastMask        columnMask
	lastIsNarrow    bool
	parted          bool // products in parts, on a matrix unit
	panelLen        int  // floats of a panel at a position
	uSlab, groupLen int  // floats of a position of a group of panels, and of a group
}

const (
	// winogradBytes is what a block of tiles may take of the second-level cache,
	// on either side of the product.
	winogradBytes = 256 << 10
	// winogradTilesLeast are tiles enough to feed the product.
	winogradTilesLeast = 24
)

func (k *kernels) winogradForward(form *winogradForm, d device.Conv, y, x, weights, bias device.Buf) {
	w := k.take()
	t := &w.winograd
	*t = winogradTask{winogradTiles: newWinogradTiles(form, d), set: k.set, in: k.set.tensor(x), out: k.set.tensor(y)}
	t.depth, t.panels = t.blocksC, t.blocksK
	t.inPlane, t.outPlane = d.H*d.W*block, d.OutH()*d.OutW()*block
	t.lastIsNarrow = t.lastMask.last(d.K)
	t.bias = w.bias.floats(t.panels * block)
	clear(t.bias)
	if !bias.IsZero() {
		copy(t.bias, bias.F32()[:d.K])
	}
	k.runWinograd(w, weights)
}

// winogradBackwardInput computes dx by the adjoint of the forward pass.
func (k *kernels) winogradBackwardInput(form *winogradForm, d device.Conv, dx, dy, weights device.Buf) {
	w := k.take()
	t := &w.winograd
	*t = winogradTask{winogradTiles: newWinogradTiles(form, d), set: k.set, in: k.set.tensor(dy), out: k.set.tensor(dx), backward: true}
	t.depth, t.panels = t.blocksK, t.blocksC
	t.inPlane, t.outPlane = d.OutH()*d.OutW()*block, d.H*d.W*block
	t.lastIsNarrow = t.lastMask.last(d.C)
	k.runWinograd(w, weights)
}

func (k *kernels) runWinograd(w *workspace, weights device.Buf) {
	t := &w.winograd
	t.weights = t.set.tensor(weights)
	t.parted = t.inParts()
	switch {
	case !t.parted && t.byPositions():
		k.runPositions(w)
	case t.isWide() && t.wideInParts():
		k.runWideParts(w)
	case t.isWide():
		k.runWide(w)
	default:
		t.cut(k.pool.threads)
		t.tables(w)
		k.makePanels(w)
		k.pool.run(w, t, (t.winogradTiles.rows()+t.perPart-1)/t.perPart)
	}
	*t, w.winogradPanels = winogradTask{}, winogradPanels{}
	k.give(w)
}

// makePanels transforms all weights of w.winograd.
func (k *kernels) makePanels(w *workspace) {
	t := &w.winograd
	t.u = w.room.floats((t.panels + t.perGroup - 1) / t.perGroup * t.groupLen)
	w.winogradPanels = winogradPanels{t}
	k.pool.run(w, &w.winogradPanels, t.panels)
}

// cut sets the sizes of parts, blocks and groups. They do not change what an
// element is the sum of.
func (t *winogradTask) cut(threads int) {
	line := t.positions * block * 4
	all := t.winogradTiles.rows()
	tiles := max(winogradTilesLeast, winogradBytes/(line*t.depth))
	if t.parted {
		tiles = partRows
	}
	t.perBlock = min(max(1, tiles/t.wide), all)
	if threads > 1 {
		t.perBlock = max(1, min(t.perBlock, all/(2*threads)))
	}
	t.perPart = t.perBlock
	if t.backward {
		images := max(1, t.perBlock/t.high)
		t.perPart = images * t.high
		t.perBlock = min(t.perBlock, t.perPart)
	}
	t.perGroup = max(1, winogradBytes/(line*t.perBlock*t.wide))
	if t.parted {
		t.perGroup = max(2, t.perGroup&^1)
	}
	t.perGroup = min(t.panels, t.perGroup)
	t.perChunk = t.depth
	t.cutGroup()
}

// cutGroup sets what a group of panels takes.
func (t *winogradTask) cutGroup() {
	t.panelLen = t.perChunk * block * block
	t.uSlab = slabLen(t.perGroup*t.perChunk, block)
	if t.parted {
		t.panelLen = t.perChunk / 2 * panelWords
		t.uSlab = t.perGroup * t.panelLen
	}
	t.groupLen = t.positions * t.uSlab
}

func (t *winogradTask) tables(w *workspace) {
	tiles := t.perBlock * t.wide
	w.rows, w.steps = grow(w.rows, tiles), grow(w.steps, t.depth)
	for i := range w.rows {
		w.rows[i] = row{int64(i * block * 4), int64(i * block * 4)}
	}
	for c := range w.steps {
		w.steps[c] = int64(c * tiles * block * 4)
	}
	t.rows, t.steps = w.rows, w.steps
}

func (t *winogradTask) start(s *scratch) {
	s.winograd.start(&t.winogradTiles)
	if t.backward {
		s.winograd.carry.floats(t.panels * t.carryLen())
	}
}

func (t *winogradTask) do(s *scratch, part int) {
	t.start(s)
	end := min((part+1)*t.perPart, t.winogradTiles.rows())
	for r := part * t.perPart; r < end; r += t.perBlock {
		t.block(s, r, min(r+t.perBlock, end))
	}
}

// block computes the rows [from, to) of tiles.
func (t *winogradTask) block(s *scratch, from, to int) {
	if t.parted {
		t.partBlock(s, from, to)
		return
	}
	tiles := t.perBlock * t.wide
	vSlab := slabLen(t.depth, tiles)
	v, m := s.winograd.v.floats(t.positions*vSlab), s.winograd.m.floats(t.positions*slabLen(t.perGroup, tiles))
	for c := range t.depth {
		for r := from; r < to; r++ {
			t.transformIn(s, v[(c*tiles+(r-from)*t.wide)*block:], c, r, vSlab)
		}
	}
	rows := t.rows[:(to-from)*t.wide]
	for first := 0; first < t.panels; first += t.perGroup {
		last := min(first+t.perGroup, t.panels)
		t.multiply(s, m, v, t.u[first/t.perGroup*t.groupLen:], last-first, last == t.panels, rows, t.depth, false)
		t.finish(s, m, first, last, from, to)
	}
}

// multiply computes the positions of a group of panels, or adds to them, from
// count blocks of channels.
func (t *winogradTask) multiply(s *scratch, m, v, u []float32, panels int, hasLast bool, rows []row, count int, accumulate bool) {
	tiles := t.perBlock * t.wide
	vSlab, mSlab := slabLen(t.depth, tiles), slabLen(t.perGroup, tiles)
	s.tile = tile{
		steps: unsafe.Pointer(unsafe.SliceData(t.steps)), blocks: count,
		panels: panels, strideB: t.perChunk * block * block * 4, strideC: tiles * block * 4,
	}
	if accumulate {
		s.tile.flags = flagAccumulate
	}
	if t.lastIsNarrow && hasLast {
		s.tile.flags |= flagClear
		s.tile.mask = unsafe.Pointer(&t.lastMask)
	}
	for p := range t.positions {
		s.tile.a, s.tile.b, s.tile.c = address(v, p*vSlab), address(u, p*t.uSlab), address(m, p*mSlab)
		runTile(t.set.tile, &s.tile, rows)
	}
	s.tile = tile{}
}

// finish transforms the positions of panels [first, last).
func (t *winogradTask) finish(s *scratch, m []float32, first, last, from, to int) {
	tiles := t.perBlock * t.wide
	for panel := first; panel < last; panel++ {
		for r := from; r < to; r++ {
			t.transformOut(s, m[((panel-first)*tiles+(r-from)*t.wide)*block:], panel, r, slabLen(t.perGroup, tiles))
		}
	}
}

func (t *winogradTask) transformIn(s *scratch, v []float32, c, r, slab int) {
	at := (r/t.high*t.depth + c) * t.inPlane
	if t.backward {
		t.fromGradient(&s.winograd, v, &t.in, at, r%t.high, slab)
		return
	}
	t.fromData(&s.winograd, v, &t.in, at, r%t.high, slab)
}

func (t *winogradTask) transformOut(s *scratch, m []float32, panel, r, slab int) {
	at := (r/t.high*t.panels + panel) * t.outPlane
	if t.backward {
		carry := s.winograd.carry.buf.F32()[panel*t.carryLen():][:t.carryLen()]
		t.toInput(&s.winograd, &t.out, at, m, carry, r%t.high, slab)
		return
	}
	t.toOutput(&s.winograd, &t.out, at, m, t.bias[panel*block:][:block], r%t.high, slab)
}
