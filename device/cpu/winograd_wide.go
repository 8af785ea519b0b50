package cpu

// Where the transformed weights are larger than the second-level cache and the
// tiles are few, the weights are transformed a chunk at a time, multiplied with
// all tiles while they lie in the cache, and forgotten.

const (
	// wideWeights is the bytes of transformed weights from which that pays.
	wideWeights = 4 << 20
	// wideTiles is the bytes of all tiles up to which it does.
	wideTiles = 8 << 20
	// wideSums is that for the gradient of the weights, which reads the tiles
	// several times.
	wideSums = 3 << 20
	// wideChunk is the bytes of weights transformed at a time.
	wideChunk = 640 << 10
	// widePanels is how many panels share a reading of the tiles, and in the
	// gradient of the weights how many blocks of channels.
	widePanels = 4
)

// isWide decides from the shape alone: sums are cut into chunks.
func (t *winogradTask) isWide() bool {
	line := t.positions * block * 4
	return line*t.depth*t.panels*block >= wideWeights && line*t.depth*t.winogradTiles.rows()*t.wide <= wideTiles
}

func (t *winogradTask) cutWide() {
	t.perBlock = t.winogradTiles.rows()
	t.perPart = t.perBlock
	t.perGroup = min(widePanels, t.panels)
	t.perChunk = min(t.depth, max(1, wideChunk/(t.positions*block*block*4*t.perGroup)))
	t.cutGroup()
}

// runWide computes w.winograd.
func (k *kernels) runWide(w *workspace) {
	t := &w.winograd
	t.cutWide()
	t.tables(w)
	slab := slabLen(t.depth, t.perBlock*t.wide)
	t.v = w.room.floats(t.positions * slab)
	w.winogradInputs, w.winogradGroups = winogradInputs{t, slab}, winogradGroups{t}
	k.pool.run(w, &w.winogradInputs, t.depth)
	k.pool.run(w, &w.winogradGroups, (t.panels+t.perGroup-1)/t.perGroup)
	w.winogradInputs, w.winogradGroups = winogradInputs{}, winogradGroups{}
}

// winogradInputs transforms the rows of tiles of v, whose positions are slab
// floats apart; part c is a block of channels.
type winogradInputs struct {
	*winogradTask
	slab int
}

func (t *winogradInputs) do(s *scratch, c int) {
	s.winograd.start(&t.winogradTiles)
	tiles := t.perBlock * t.wide
	for r := range t.perBlock {
		t.transformIn(s, t.v[(c*tiles+r*t.wide)*block:], c, t.first+r, t.slab)
	}
}

// winogradGroups computes the outputs from t.v; part g is a group of panels.
type winogradGroups struct{ *winogradTask }

func (t *winogradGroups) do(s *scratch, g int) {
	t.start(s)
	first := g * t.perGroup
	last := min(first+t.perGroup, t.panels)
	tiles := t.perBlock * t.wide
	u := s.winograd.u.floats(t.groupLen)
	m := s.winograd.m.floats(t.positions * slabLen(t.perGroup, tiles))
	for from := 0; from < t.depth; from += t.perChunk {
		count := min(t.perChunk, t.depth-from)
		for panel := first; panel < last; panel++ {
			t.fillPanel(s, u, panel, from, count)
		}
		t.multiply(s, m, t.v[from*tiles*block:], u, last-first, last == t.panels, t.rows, count, from > 0)
	}
	t.finish(s, m, first, last, 0, t.perBlock)
}

func (t *winogradGradient) isWide() bool {
	line := t.positions * block * 4
	return line*t.blocksC*t.blocksK*block >= wideWeights && line*max(t.blocksC, t.blocksK)*t.winogradTiles.rows()*t.wide <= wideSums
}

// runWideGradient keeps the sums of a few blocks of channels in the cache, from
// all tiles to the weights.
func (k *kernels) runWideGradient(w *workspace) {
	t := &w.winogradGradient
	t.perBlock = t.winogradTiles.rows()
	t.perChunk = min(widePanels, t.blocksC)
	t.tables(w)
	tiles := t.perBlock * t.wide
	t.v = w.room.floats(t.positions * slabLen(t.blocksC, tiles))
	t.g = w.room.floats(t.positions * slabLen(t.blocksK, tiles))
	w.winogradImages, w.winogradChunks = winogradImages{t}, winogradChunks{t}
	k.pool.run(w, &w.winogradImages, t.blocksC+t.blocksK)
	k.pool.run(w, &w.winogradChunks, t.chunksC()*((t.blocksK+widePanels-1)/widePanels))
	w.winogradImages, w.winogradChunks = winogradImages{}, winogradChunks{}
}

func (t *winogradGradient) chunksC() int { return (t.blocksC + t.perChunk - 1) / t.perChunk }

// winogradImages transforms x and dy; part c is a block of channels of either.
type winogradImages struct{ *winogradGradient }

func (t *winogradImages) do(s *scratch, c int) {
	s.winograd.start(&t.winogradTiles)
	for r := range t.perBlock {
		t.transform(s, t.v, t.g, c, t.first+r, r)
	}
}

// winogradChunks computes the weights of a few blocks of input channels and a
// few of output channels.
type winogradChunks struct{ *winogradGradient }

func (t *winogradChunks) do(s *scratch, part int) {
	from, first := part%t.chunksC()*t.perChunk, part/t.chunksC()*widePanels
	count, panels := min(t.perChunk, t.blocksC-from), min(widePanels, t.blocksK-first)
	tiles := t.perBlock * t.wide
	sums := s.winograd.m.floats(widePanels * t.sumsLen())
	t.multiply(s, sums, t.v[from*tiles*block:], t.g[first*tiles*block:], panels, tiles, t.rows[:count*block], false)
	for k := range panels {
		t.store(s, sums[k*t.sumsLen():], first+k, from, count)
	}
}
