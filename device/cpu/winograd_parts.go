package cpu

// Winograd's products on a matrix unit: the transformed images and weights are
// cut into parts (parts.go) where they lie in the cache.

// winogradParts is the most bytes of parts of transformed weights for which this
// pays: they and a block of tiles lie in the second-level cache, from which the
// unit can be fed. Tiles of vectors need a third of that traffic.
const winogradParts = 1 << 20

// inParts decides from the shape alone.
func (t *winogradTask) inParts() bool {
	return t.set.parts.product != nil && t.depth%2 == 0 &&
		t.positions*t.depth/2*t.panels*panelWords*4 <= winogradParts &&
		!t.lastIsNarrow // NaN times the zeros of padding is NaN
}

// chunkWords returns the words of one row at one position.
func chunkWords(chunks int) int { return 3 * chunks * tileColumns }

// partPanel fills in the parts of a panel.
func (t *winogradTask) partPanel(s *scratch, dst []float32, panel int) {
	slab := slabLen(2, block)
	u := s.winograd.whole.floats(t.positions * slab)
	for c := 0; c < t.depth; c += 2 {
		t.transformPanel(s, u, slab, panel, c, 2)
		for p := range t.positions {
			first := u[p*slab:]
			t.set.parts.split(dst[p*t.uSlab+c/2*panelWords:], first, first[block*block:], block, panelWords/3, block)
		}
	}
}

// partInputs fills in the parts of two blocks of channels, the chunk-th two, of
// rows [from, to) of tiles. a is [unit][position][chunk][part][row].
func (t *winogradTask) partInputs(s *scratch, a []float32, chunk, from, to int) {
	count := (to - from) * t.wide
	slab := slabLen(2, count)
	v := s.winograd.whole.floats(t.positions * slab)
	for c := range 2 {
		for r := from; r < to; r++ {
			t.transformIn(s, v[(c*count+(r-from)*t.wide)*block:], 2*chunk+c, r, slab)
		}
	}
	chunks := t.depth / 2
	for at := 0; at < count; at += partRows {
		n := min(partRows, count-at)
		unit := a[at*t.positions*chunkWords(chunks):]
		for p := range t.positions {
			first := v[p*slab+at*block:]
			t.set.parts.split(unit[(p*chunks+chunk)*3*n*block:], first, first[count*block:], block, n*block, n)
		}
	}
}

// partBlock is block by parts.
func (t *winogradTask) partBlock(s *scratch, from, to int) {
	count := (to - from) * t.wide
	chunks := t.depth / 2
	a := s.winograd.v.floats(count * t.positions * chunkWords(chunks))
	m := s.winograd.m.floats(t.positions * slabLen(t.perGroup, t.perBlock*t.wide))
	for chunk := range chunks {
		t.partInputs(s, a, chunk, from, to)
	}
	for first := 0; first < t.panels; first += t.perGroup {
		last := min(first+t.perGroup, t.panels)
		t.multiplyParts(s, m, a, t.u[first/t.perGroup*t.groupLen:], last-first, count)
		t.finish(s, m, first, last, from, to)
	}
}

// multiplyParts is multiply for count rows of a.
func (t *winogradTask) multiplyParts(s *scratch, m, a, u []float32, panels, count int) {
	chunks := t.depth / 2
	tiles := t.perBlock * t.wide
	p := &s.parts
	for at := 0; at < count; at += partRows {
		n := min(partRows, count-at)
		p.setRows(n, block*4)
		p.a, p.b, p.c = address(a, at*t.positions*chunkWords(chunks)), address(u, 0), address(m, at*block)
		p.panels, p.chunks = panels, chunks
		p.strideA, p.strideB, p.strideC = 3*chunks*n*block*4, t.uSlab*4, slabLen(t.perGroup, tiles)*4
		p.panelB, p.panelC = chunks*panelWords*4, tiles*block*4
		t.set.parts.run(p, t.positions)
	}
}
