package cpu

// Winograd on a matrix unit with more weights than lie in the second-level cache
// beside a block of tiles. To read the weights again for each block would take
// longer than the products: so all tiles are transformed first, and then position
// by position cut into parts and multiplied, where the matrices of one position
// fit that cache. Every number goes twice through memory, its parts never.

const (
	// positionsTiles are the tiles from which that pays, positionsWeights the most
	// bytes of transformed weights, which go through memory as well.
	positionsTiles   = 64
	positionsWeights = 16 << 20
	// positionsImages bounds the bytes of transformed images of one turn.
	positionsImages = 24 << 20
)

// byPositions decides from the shape alone.
func (t *winogradTask) byPositions() bool {
	return t.set.parts.product != nil && t.depth%2 == 0 && !t.lastIsNarrow &&
		t.winogradTiles.rows()*t.wide >= positionsTiles &&
		t.positions*t.depth*t.panels*block*block*4 <= positionsWeights &&
		t.imageBytes(max(t.depth, t.panels)) <= positionsImages
}

// runPositions computes w.winograd, some images at a time.
func (k *kernels) runPositions(w *workspace) {
	t := &w.winograd
	t.perGroup, t.perChunk = t.panels, t.depth
	t.cutGroup()
	k.makePanels(w)
	images := min(t.d.N, positionsImages/t.imageBytes(max(t.depth, t.panels)))
	t.perBlock = images * t.high
	t.v = w.room.floats(t.positions * t.imagesSlab())
	for n := 0; n < t.d.N; n += images {
		t.first = n * t.high
		t.perBlock = min(images, t.d.N-n) * t.high
		w.winogradInputs = winogradInputs{t, t.imagesSlab()}
		k.pool.run(w, &w.winogradInputs, t.depth)
		w.winogradPositions = winogradPositions{t}
		k.pool.run(w, &w.winogradPositions, t.positions)
		w.winogradOutputs = winogradOutputs{t}
		k.pool.run(w, &w.winogradOutputs, t.panels)
	}
	w.winogradInputs, w.winogradPositions, w.winogradOutputs = winogradInputs{}, winogradPositions{}, winogradOutputs{}
}

// imagesSlab returns the floats of a position of t.v, where products take the
// place of what they are made of.
func (t *winogradTask) imagesSlab() int {
	return slabLen(max(t.depth, t.panels), t.perBlock*t.wide)
}

// winogradPositions multiplies; part p is a position.
type winogradPositions struct{ *winogradTask }

func (t *winogradPositions) do(s *scratch, p int) {
	tiles, chunks := t.perBlock*t.wide, t.depth/2
	v, u := t.v[p*t.imagesSlab():], t.u[p*t.uSlab:]
	a := s.left.floats(tiles * chunkWords(chunks))
	for at := 0; at < tiles; at += partRows {
		n := min(partRows, tiles-at)
		for c := range chunks {
			first := v[(2*c*tiles+at)*block:]
			t.set.parts.split(a[(at*chunks+c*n)*3*block:], first, first[tiles*block:], block, n*block, n)
		}
	}
	b := s.image.floats(2 * chunks * panelWords)
	for panel := 0; panel < t.panels; panel += 2 {
		count := min(2, t.panels-panel)
		for q := range count * chunks {
			first := u[panel*t.panelLen+q*2*block*block:]
			t.set.parts.split(b[q*panelWords:], first, first[block*block:], block, panelWords/3, block)
		}
		t.set.parts.units(&s.parts, partsUnits{a: a, b: b, c: v[panel*tiles*block:], rows: tiles, panels: count, chunks: chunks, panelC: tiles * block})
	}
}

// winogradOutputs transforms products; part p is a panel.
type winogradOutputs struct{ *winogradTask }

func (t *winogradOutputs) do(s *scratch, panel int) {
	t.start(s)
	for r := range t.perBlock {
		t.transformOut(s, t.v[(panel*t.perBlock+r)*t.wide*block:], panel, t.first+r, t.imagesSlab())
	}
}

// partsUnits is a product of many rows with some panels: A by units of partRows
// rows, C [panel][row] of lines.
type partsUnits struct {
	a, b, c              []float32
	rows, panels, chunks int
	panelC               int // floats
	accumulate           bool
}

// units computes x with p.
func (k *partKernels) units(p *partsProduct, x partsUnits) {
	for at := 0; at < x.rows; {
		n, count := partRows, (x.rows-at)/partRows
		if count == 0 {
			n, count = x.rows-at, 1
		}
		p.setRows(n, block*4)
		p.a, p.b, p.c = address(x.a, at*chunkWords(x.chunks)), address(x.b, 0), address(x.c, at*block)
		p.panels, p.chunks = x.panels, x.chunks
		p.strideA, p.strideC = n*chunkWords(x.chunks)*4, n*block*4
		p.panelB, p.panelC = x.chunks*panelWords*4, x.panelC*4
		if x.accumulate {
			p.accumulate = 1
		}
		k.run(p, count)
		at += n * count
	}
}
