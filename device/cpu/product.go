package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

const (
	// productRows is how many rows of the left side stay in the second-level
	// cache while the panels of the right one pass by; up to productAlone rows
	// make one block. Both are multiples of a square's 16 and a group's 12 or 6.
	productRows  = 48
	productAlone = 96
	// panelFloats is the most that the panels of one part hold: half a megabyte,
	// which stays in the second-level cache from one block of rows to the next.
	panelFloats = 1 << 17
)

// productTask computes C block by block: a part is a group of panels, and one
// block of rows or, when it packs those panels itself, all of them.
type productTask struct {
	set         *kernelSet
	d           device.MatMul
	left, right side
	c           tensor
	ldc         int
	bias        []float32 // whole panels of C's columns, or nil
	turned      bool      // left and right are exchanged
	packedLeft  []float32 // row blocks of the left side, unless along
	packed      []float32 // the right side in panels, or nil when private
	private     bool      // a part packs a group of panels and does all rows
	rowsOf      int       // rows of a block
	blocks      int
	panels      int
	groups      int // of panels
	parts       int
	rows        []row
	steps       []int64
	depth       int // steps of one pass, whole blocks when there are several
	step        int // floats from a block of 16 steps to the next, on the left

	lastMask     columnMask
	lastIsNarrow bool
}

// tables fills in the rows of one block and the steps of one pass.
func (t *productTask) tables(w *workspace) {
	t.depth = t.d.K
	if passes := (t.d.K + t.set.depth - 1) / t.set.depth; passes > 1 {
		// Even passes of whole blocks: 784 is 400 and 384.
		t.depth = ((t.d.K+passes-1)/passes + tileColumns - 1) / tileColumns * tileColumns
	}
	w.rows = grow(w.rows, min(t.rowsOf, t.left.count))
	w.steps = grow(w.steps, t.depth/tileColumns+t.depth%tileColumns)
	t.rows, t.steps = w.rows, w.steps
	ldc := t.ldc
	switch {
	case t.turned:
		ldc = tileColumns
	case t.c.halves != nil:
		ldc = t.width()
	}
	stride := t.left.stride
	t.step = tileColumns
	switch {
	case !t.left.along:
		stride, t.step = tileColumns, t.rowsOf*tileColumns
	case t.left.widen != nil:
		stride = t.d.K // a block is widened when its turn comes
	}
	for i := range t.rows {
		t.rows[i] = row{int64(i * stride * 4), int64(i * ldc * 4)}
	}
	t.fillSteps(t.steps, t.depth/tileColumns)
	t.lastIsNarrow = t.lastMask.last(t.right.count) && !t.turned
}

// width is that of a line of a part's C, where that is not C itself.
func (t *productTask) width() int {
	return (t.panels + t.groups - 1) / t.groups * tileColumns
}

// fillSteps fills in blocks steps of 16 floats and then steps of one.
func (t *productTask) fillSteps(steps []int64, blocks int) {
	for i := range steps {
		steps[i] = int64(i * t.step * 4)
		if i > blocks {
			steps[i] = int64((blocks*t.step + i - blocks) * 4)
		}
	}
}

func (t *productTask) do(s *scratch, index int) {
	// Parts that follow one another share their panels.
	group, block, blocks := index/t.blocks, index%t.blocks, 1
	if t.private {
		group, block, blocks = index, 0, t.blocks
	}
	p := part{lo: group * t.panels / t.groups, hi: (group + 1) * t.panels / t.groups}
	p.right = t.panelsOf(s, &p)
	for i := range blocks {
		t.block(s, &p, (block+i)*t.rowsOf)
	}
	s.tile = tile{}
}

// block computes the rows from first of p's panels.
func (t *productTask) block(s *scratch, p *part, first int) {
	p.first, p.rows = first, t.rows[:min(t.rowsOf, t.left.count-first)]
	var left []float32
	if t.left.along {
		left, _ = t.left.rows(&s.wide, first, len(p.rows), 0, t.d.K)
	} else {
		left = t.packedLeft[first*panels(t.d.K)*tileColumns:]
	}
	if t.turned {
		p.lines = s.plane.floats((p.hi - p.lo) * t.rowsOf * tileColumns)
	}
	t.open(s, p)
	for k := 0; ; k += t.depth {
		depth := min(t.depth, t.d.K-k)
		p.last = k+depth == t.d.K
		s.tile = tile{a: address(left, k/tileColumns*t.step), blocks: depth / tileColumns, singles: depth % tileColumns}
		if k > 0 || t.d.Accumulate && !t.turned {
			s.tile.flags = flagAccumulate
		}
		t.pass(s, p, k)
		if p.last {
			break
		}
	}
	t.finish(p)
}

// part is one part of a product being computed.
type part struct {
	rows   []row
	first  int       // row of the left side
	lo, hi int       // panels
	right  []float32 // panel lo and on
	lines  []float32 // the transpose of C: [panel][rowsOf][16]
	c      []float32 // the part's rows and columns of C, ldc apart
	ldc    int
	last   bool // pass
}

// panelsOf returns the panels of p's right side.
func (t *productTask) panelsOf(s *scratch, p *part) []float32 {
	if !t.private {
		return t.packed[p.lo*t.d.K*tileColumns:]
	}
	dst := s.image.floats((p.hi - p.lo) * t.d.K * tileColumns)
	own := packTask{set: t.set, src: t.right, depth: t.d.K}
	own.pack(s, dst, p.lo, p.hi, 0, t.d.K)
	return dst
}

// pass adds the products of the steps from k to the panels of p.
func (t *productTask) pass(s *scratch, p *part, k int) {
	u := &s.tile
	steps := t.steps
	if u.singles > 0 && k > 0 {
		// A short pass after longer ones has its singles where theirs had blocks.
		s.steps = grow(s.steps, u.blocks+u.singles)
		steps = s.steps
		t.fillSteps(steps, u.blocks)
	}
	u.steps = unsafe.Pointer(unsafe.SliceData(steps))
	u.strideB, u.strideC = t.d.K*tileColumns*4, tileColumns*4
	if t.turned {
		u.strideC = t.rowsOf * tileColumns * 4
	} else if p.last && t.d.Activation == device.ReLU {
		u.flags |= flagReLU
	}
	for i := p.lo; i < p.hi; i += tilePanels {
		u.panels = min(tilePanels, p.hi-i)
		u.b = address(p.right, ((i-p.lo)*t.d.K+k)*tileColumns)
		if t.turned {
			u.c = address(p.lines, (i-p.lo)*t.rowsOf*tileColumns)
		} else {
			u.c = address(p.c, (i-p.lo)*tileColumns)
			if p.last && t.bias != nil {
				u.bias = address(t.bias, i*tileColumns)
			}
		}
		if t.lastIsNarrow && i+u.panels == t.panels {
			u.flags |= flagMask
			u.mask = unsafe.Pointer(&t.lastMask)
		}
		runTile(t.set.tile, u, p.rows)
	}
}

// extent returns the rows and columns of C that p computes.
func (t *productTask) extent(p *part) (row, column, rows, columns int) {
	row, column = p.first, p.lo*tileColumns
	rows, columns = len(p.rows), min(p.hi*tileColumns, t.right.count)-column
	if t.turned {
		return column, row, columns, rows
	}
	return row, column, rows, columns
}

// open sets p.c, of 16 bits to float32 that close rounds.
func (t *productTask) open(s *scratch, p *part) {
	row, column, rows, columns := t.extent(p)
	if t.c.halves == nil {
		p.c, p.ldc = t.c.floats[row*t.ldc+column:], t.ldc
		return
	}
	p.ldc = columns
	if !t.turned {
		p.ldc = t.width()
	}
	p.c = s.result.floats(rows * p.ldc)
	for i := 0; i < rows && t.d.Accumulate; i++ {
		lo := (row+i)*t.ldc + column
		t.c.read(p.c[i*p.ldc:], lo, lo+columns)
	}
}

// finish turns the lines of p and applies what the tile does not know, while
// the block is in the cache.
func (t *productTask) finish(p *part) {
	if t.turned {
		t.turn(p)
	}
	row, column, rows, columns := t.extent(p)
	for i := range rows {
		line := p.c[i*p.ldc:][:columns]
		if t.d.Activation != device.Identity && t.d.Activation != device.ReLU {
			activate(t.set, t.d.Activation, line, line)
		} else if t.c.halves == nil {
			return
		}
		t.c.wrote(line, (row+i)*t.ldc+column)
	}
}

// turn writes p's lines to C, a square at a time.
func (t *productTask) turn(p *part) {
	flags := 0
	if t.d.Accumulate {
		flags = flagAccumulate
	}
	if t.d.Activation == device.ReLU {
		flags |= flagReLU
	}
	for i := p.lo; i < p.hi; i++ {
		count := min(tileColumns, t.right.count-i*tileColumns)
		for j := 0; j < len(p.rows); j += tileColumns {
			width := min(tileColumns, len(p.rows)-j)
			var bias []float32
			if t.bias != nil {
				bias = t.bias[p.first+j:][:tileColumns]
			}
			c := p.c[(i-p.lo)*tileColumns*p.ldc+j:]
			t.set.turn(c, p.lines[((i-p.lo)*t.rowsOf+j)*tileColumns:], bias, p.ldc, count, width, flags)
		}
	}
}
