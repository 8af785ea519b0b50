package cpu

// The products of winograd_wide.go on a matrix unit: images are cut into parts
// once, weights as they are transformed, a chunk of channels at a time.

const (
	// widePartsTiles are the tiles from which that pays.
	widePartsTiles = 24
	// widePartsPanels is how many panels, and in the gradient of the weights blocks
	// of channels, share a reading of the parts of the images.
	widePartsPanels = 8
	// widePartsTurn is how many positions are cut before they are multiplied.
	widePartsTurn = 6
)

// wideInParts decides from the shape alone.
func (t *winogradTask) wideInParts() bool {
	return t.set.parts.product != nil && t.depth%2 == 0 && !t.lastIsNarrow && t.winogradTiles.rows()*t.wide >= widePartsTiles
}

// runWideParts is runWide by parts.
func (k *kernels) runWideParts(w *workspace) {
	t := &w.winograd
	t.perBlock = t.winogradTiles.rows()
	t.perGroup, t.perChunk = min(widePartsPanels, t.panels), 2
	t.cutGroup()
	t.v = w.room.floats(t.positions * t.perBlock * t.wide * chunkWords(t.depth/2))
	w.winogradCutInputs, w.winogradCutGroups = winogradCutInputs{t}, winogradCutGroups{t}
	k.pool.run(w, &w.winogradCutInputs, t.depth/2)
	k.pool.run(w, &w.winogradCutGroups, (t.panels+t.perGroup-1)/t.perGroup)
	w.winogradCutInputs, w.winogradCutGroups = winogradCutInputs{}, winogradCutGroups{}
}

// winogradCutInputs fills in v, [chunk][position] of parts by units of partRows
// rows; part c is a chunk.
type winogradCutInputs struct{ *winogradTask }

func (t *winogradCutInputs) do(s *scratch, chunk int) {
	s.winograd.start(&t.winogradTiles)
	tiles := t.perBlock * t.wide
	slab := slabLen(2, tiles)
	v := s.winograd.whole.floats(t.positions * slab)
	for c := range 2 {
		for r := range t.perBlock {
			t.transformIn(s, v[(c*tiles+r*t.wide)*block:], 2*chunk+c, r, slab)
		}
	}
	for p := range t.positions {
		a := t.v[(chunk*t.positions+p)*tiles*chunkWords(1):]
		for at := 0; at < tiles; at += partRows {
			n, first := min(partRows, tiles-at), v[p*slab+at*block:]
			t.set.parts.split(a[at*chunkWords(1):], first, first[tiles*block:], block, n*block, n)
		}
	}
}

// winogradCutGroups computes the outputs from v; part g is a group of panels.
type winogradCutGroups struct{ *winogradTask }

func (t *winogradCutGroups) do(s *scratch, g int) {
	t.start(s)
	first := g * t.perGroup
	last := min(first+t.perGroup, t.panels)
	u := s.winograd.u.floats(t.groupLen)
	m := s.winograd.m.floats(t.positions * slabLen(t.perGroup, t.perBlock*t.wide))
	for chunk := range t.depth / 2 {
		for panel := first; panel < last; panel++ {
			t.fillPanel(s, u, panel, 2*chunk, 2)
		}
		for p := 0; p < t.positions; p += widePartsTurn {
			t.multiplyTurn(s, m, u, last-first, chunk, p, min(widePartsTurn, t.positions-p))
		}
	}
	t.finish(s, m, first, last, 0, t.perBlock)
}

// multiplyTurn adds the products of a chunk to count positions from p on of m, or
// sets them.
func (t *winogradCutGroups) multiplyTurn(s *scratch, m, u []float32, panels, chunk, p, count int) {
	tiles := t.perBlock * t.wide
	b := s.image.floats(count * panels * panelWords)
	for i := range count {
		for q := range panels {
			first := u[(p+i)*t.uSlab+q*t.panelLen:]
			t.set.parts.split(b[(i*panels+q)*panelWords:], first, first[block*block:], block, panelWords/3, block)
		}
	}
	slab := slabLen(t.perGroup, tiles)
	x := &s.parts
	for at := 0; at < tiles; at += partRows {
		n := min(partRows, tiles-at)
		x.setRows(n, block*4)
		x.a, x.b, x.c = address(t.v, ((chunk*t.positions+p)*tiles+at)*chunkWords(1)), address(b, 0), address(m, p*slab+at*block)
		x.panels, x.chunks = panels, 1
		x.strideA, x.strideB, x.strideC = tiles*chunkWords(1)*4, panels*panelWords*4, slab*4
		x.panelB, x.panelC = panelWords*4, tiles*block*4
		if chunk > 0 {
			x.accumulate = 1
		}
		t.set.parts.run(x, count)
	}
}

// wideInParts decides from the shape alone.
func (t *winogradGradient) wideInParts() bool {
	return t.set.parts.product != nil && t.blocksC%2 == 0 && t.winogradTiles.rows()*t.wide >= widePartsTiles
}

// runWideGradientParts is runWideGradient by parts.
func (k *kernels) runWideGradientParts(w *workspace) {
	t := &w.winogradGradient
	t.perBlock = t.winogradTiles.rows()
	t.perChunk = min(widePartsPanels, t.blocksC)
	t.v = w.room.floats(t.positions * t.blocksC * block * chunkWords(t.chunks()))
	t.g = w.room.floats(t.positions * t.blocksK * block * chunkWords(t.chunks()))
	w.winogradCutImages, w.winogradCutChunks = winogradCutImages{t}, winogradCutChunks{t}
	k.pool.run(w, &w.winogradCutImages, t.blocksC+t.blocksK)
	k.pool.run(w, &w.winogradCutChunks, t.chunksC()*((t.blocksK+widePanels-1)/widePanels))
	w.winogradCutImages, w.winogradCutChunks = winogradCutImages{}, winogradCutChunks{}
}

// chunks returns the chunks of steps of all tiles of a turn.
func (t *winogradGradient) chunks() int { return (t.perBlock*t.wide + partDepth - 1) / partDepth }

// winogradCutImages transforms x and dy and cuts them into parts, of x [position]
// by units of two blocks of channels, of dy [position][panel]; part c is a block
// of channels of either.
type winogradCutImages struct{ *winogradGradient }

func (t *winogradCutImages) do(s *scratch, c int) {
	s.winograd.start(&t.winogradTiles)
	tiles, chunks := t.perBlock*t.wide, t.chunks()
	slab := slabLen(1, tiles)
	v := s.winograd.v.floats(t.positions * slab)
	for r := range t.perBlock {
		t.transformBlock(s, v[r*t.wide*block:], c, r, slab)
	}
	for p := range t.positions {
		lines := v[p*slab:][:tiles*block]
		if c < t.blocksC {
			t.cutRows(s, t.v[(p*t.blocksC/2+c/2)*partRows*chunkWords(chunks):], lines, c%2*block, partRows)
			continue
		}
		t.cutPanel(s, t.g[(p*t.blocksK+c-t.blocksC)*chunks*panelWords:], lines)
	}
}

// winogradCutChunks computes the weights of a few blocks of input channels and a
// few of output channels.
type winogradCutChunks struct{ *winogradGradient }

func (t *winogradCutChunks) do(s *scratch, part int) {
	from, first := part%t.chunksC()*t.perChunk, part/t.chunksC()*widePanels
	count, panels, chunks := min(t.perChunk, t.blocksC-from), min(widePanels, t.blocksK-first), t.chunks()
	sums := s.winograd.m.floats(widePanels * t.sumsLen())
	for p := range t.positions {
		t.set.parts.units(&s.parts, partsUnits{
			a: t.v[(p*t.blocksC+from)*block*chunkWords(chunks):], b: t.g[(p*t.blocksK+first)*chunks*panelWords:], c: sums[p*t.sumsSlab():],
			rows: count * block, panels: panels, chunks: chunks, panelC: t.sumsLen(),
		})
	}
	for k := range panels {
		t.store(s, sums[k*t.sumsLen():], first+k, from, count)
	}
}
