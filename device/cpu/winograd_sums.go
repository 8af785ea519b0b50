package cpu

// The gradient of the weights of winogradPositions: all tiles of some images are
// transformed, and for each position the sums of all channels computed on the
// matrix unit. Rows of the products are input channels, their steps are tiles.

// sumsLeast is the bytes of all sums from which that pays: fewer stay in the
// second-level cache while images pass, and to turn and cut a few tiles takes as
// long as their products on vectors.
const sumsLeast = 1 << 20

// byPositions decides from the shape alone.
func (t *winogradGradient) byPositions() bool {
	sums := t.positions * t.blocksC * t.blocksK * block * block * 4
	return t.set.parts.product != nil && t.winogradTiles.rows()*t.wide >= positionsTiles && sums >= sumsLeast && sums <= positionsWeights &&
		t.imageBytes(t.blocksC+t.blocksK) <= positionsImages
}

// runGradientPositions computes w.winogradGradient, some images at a time, whose
// number decides the bits: it follows from the shape alone.
func (k *kernels) runGradientPositions(w *workspace) {
	t := &w.winogradGradient
	t.perChunk, t.groups = t.blocksC, 1
	images := min(t.d.N, positionsImages/t.imageBytes(t.blocksC+t.blocksK))
	t.perBlock = images * t.high
	t.v = w.room.floats(t.positions * slabLen(t.blocksC, t.perBlock*t.wide))
	t.g = w.room.floats(t.positions * slabLen(t.blocksK, t.perBlock*t.wide))
	t.partial = w.room.floats(t.groupLen())
	for n := 0; n < t.d.N; n += images {
		t.first = n * t.high
		t.perBlock = min(images, t.d.N-n) * t.high
		w.winogradImages = winogradImages{t}
		k.pool.run(w, &w.winogradImages, t.blocksC+t.blocksK)
		w.winogradSums = winogradSumsTask{t}
		k.pool.run(w, &w.winogradSums, t.positions)
	}
	w.winogradStore = winogradStore{t}
	k.pool.run(w, &w.winogradStore, t.blocksK)
	w.winogradImages, w.winogradSums, w.winogradStore = winogradImages{}, winogradSumsTask{}, winogradStore{}
}

// winogradSumsTask computes or adds to the sums; part p is a position.
type winogradSumsTask struct{ *winogradGradient }

func (t *winogradSumsTask) do(s *scratch, p int) {
	tiles, chunks, channels := t.perBlock*t.wide, t.chunks(), t.blocksC*block
	v, g := t.v[p*slabLen(t.blocksC, tiles):], t.g[p*slabLen(t.blocksK, tiles):]
	a := s.left.floats(channels * chunkWords(chunks))
	for at := 0; at < channels; at += partRows {
		n := min(partRows, channels-at)
		for r := 0; r < n; r += block {
			t.cutRows(s, a[at*chunkWords(chunks):], v[(at+r)*tiles:][:tiles*block], r, n)
		}
	}
	b := s.image.floats(2 * chunks * panelWords)
	for k := 0; k < t.blocksK; k += 2 {
		count := min(2, t.blocksK-k)
		for q := range count {
			t.cutPanel(s, b[q*chunks*panelWords:], g[(k+q)*tiles*block:][:tiles*block])
		}
		t.set.parts.units(&s.parts, partsUnits{
			a: a, b: b, c: t.partial[k*t.sumsLen()+p*t.sumsSlab():], rows: channels, panels: count, chunks: chunks,
			panelC: t.sumsLen(), accumulate: t.first > 0,
		})
	}
}

// cutRows turns the lines of all tiles, 16 channels, into rows and cuts them into
// the parts of a unit of n rows, from its row r on.
func (t *winogradGradient) cutRows(s *scratch, unit, lines []float32, r, n int) {
	squares := s.winograd.whole.floats(4 * half * block)
	one, two := squares[2*half*block:3*half*block], squares[3*half*block:]
	for c := 0; c*partDepth*block < len(lines); c++ {
		first, second := halves(squares, lines, c)
		t.set.transpose(one, first, block, half)
		t.set.transpose(two, second, block, half)
		t.set.parts.split(unit[(3*c*n+r)*block:], one, two, half, n*block, half)
	}
}

// cutPanel cuts the lines of all tiles, 16 channels, into the parts of a panel.
func (t *winogradGradient) cutPanel(s *scratch, panel, lines []float32) {
	squares := s.winograd.whole.floats(4 * half * block)
	for c := 0; c*partDepth*block < len(lines); c++ {
		first, second := halves(squares, lines, c)
		t.set.parts.split(panel[c*panelWords:], first, second, block, panelWords/3, half)
	}
}

// halves returns both halves of chunk c of the lines of tiles: in room, with zeros
// behind the last tile, where they are not whole.
func halves(room, lines []float32, c int) (first, second []float32) {
	at := c * partDepth * block
	if at+partDepth*block <= len(lines) {
		return lines[at:], lines[at+half*block:]
	}
	room = room[:partDepth*block]
	clear(room[copy(room, lines[at:]):])
	return room, room[half*block:]
}
