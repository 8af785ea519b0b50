package cpu

import (
	"slices"

	"github.com/gradfusion/gradfusion/device"
)

// Matrix products on a matrix unit (parts.go). The right side is cut into parts
// once; the rows of the left side are cut as they are read, some chunks of steps
// at a time, and multiplied with a group of panels.

const (
	// partsProductDepth, partsProductRight and partsProductLeft are the steps and
	// the vectors of either side from which cutting them pays: sums of fewer steps
	// take longer to move than to compute.
	partsProductDepth = 128
	partsProductRight = 32
	partsProductLeft  = 48
	// leftPartsWords bounds a left side that is cut once for all groups of panels.
	leftPartsWords = 3 << 19
)

// productParts is productTask by parts. Its sums are lines, [panel][rowsOf][16].
type productParts struct {
	*productTask
	chunks    int       // of steps; the last one may be filled up with zeros
	cutLeft   []float32 // parts of all rows by units of partRows, or nil
	cutRight  []float32 // parts of all panels, or nil where each part of the product cuts its own
	notFinite []bool    // by panel and partRows rows: left to tiles, which pass infinities on as they should be
}

// inParts decides from the shape alone.
func (t *productTask) inParts() bool {
	return t.set.parts.product != nil && t.d.K >= partsProductDepth && t.right.count >= partsProductRight && t.left.count >= partsProductLeft
}

// runProductParts computes w.product.
func (k *kernels) runProductParts(w *workspace) {
	t, q := &w.product, &w.productParts
	t.panels = panels(t.right.count)
	t.cutParts(k.pool.threads)
	t.tables(w)
	w.notFinite = grow(w.notFinite, t.panels*cells(t.left.count))
	clear(w.notFinite)
	*q = productParts{productTask: t, chunks: (t.d.K + partDepth - 1) / partDepth, notFinite: w.notFinite}
	if t.rightOnce() {
		q.cutRight = w.room.floats(t.panels * q.chunks * panelWords)
		w.rightParts = rightParts{q, min(rightPanels, (t.panels+k.pool.threads-1)/k.pool.threads)}
		k.pool.run(w, &w.rightParts, (t.panels+w.rightParts.each-1)/w.rightParts.each)
	}
	if t.leftOnce() {
		w.leftParts = leftParts{q, w.room.floats(t.left.count * chunkWords(q.chunks))}
		k.pool.run(w, &w.leftParts, (t.left.count+partRows-1)/partRows)
		q.cutLeft = w.leftParts.dst
	}
	k.pool.run(w, q, t.parts)
	if slices.Contains(q.notFinite, true) {
		t.cutCells()
		t.tables(w)
		k.packLeft(w)
		t.packed = k.packSide(w, t.right)
		w.productAgain = productAgain{q}
		k.pool.run(w, &w.productAgain, t.parts)
	}
	*q, w.rightParts, w.leftParts, w.productAgain = productParts{}, rightParts{}, leftParts{}, productAgain{}
}

// rightPanels is how many panels of the right side are cut at a time, at most.
const rightPanels = 4

// rightParts cuts the right side; part i is each panels.
type rightParts struct {
	*productParts
	each int
}

func (t *rightParts) do(s *scratch, index int) {
	lo, panelLen := index*t.each, t.chunks*panelWords
	t.cutPanels(s, t.cutRight[lo*panelLen:], panelLen, lo, min(t.panels, lo+t.each), 0, t.chunks)
}

// leftParts cuts the left side; part i is partRows rows.
type leftParts struct {
	*productParts
	dst []float32
}

func (t *leftParts) do(s *scratch, index int) {
	first := index * partRows
	t.cutRows(s, t.dst[first*chunkWords(t.chunks):], first, min(partRows, t.left.count-first), 0, t.chunks)
}

// productAgain computes by tiles what productParts left to them.
type productAgain struct{ *productParts }

func (t *productAgain) do(s *scratch, index int) {
	if t.notFinite[index] {
		t.productTask.do(s, index)
	}
}

func (t *productParts) do(s *scratch, index int) {
	group, block := index/t.blocks, index%t.blocks
	p := part{lo: group * t.panels / t.groups, hi: (group + 1) * t.panels / t.groups, first: block * t.rowsOf}
	count := min(t.rowsOf, t.left.count-p.first)
	p.lines = s.plane.floats((p.hi - p.lo) * t.rowsOf * tileColumns)
	for from := 0; from < t.chunks; from += partsChunks {
		t.multiply(s, &p, count, from, min(partsChunks, t.chunks-from))
	}
	p.rows = t.rows[:count]
	if t.finite(&p) {
		t.store(s, &p)
	} else {
		t.storeCells(s, &p)
	}
}

// finite reports whether all sums of p are finite and not too large to be added up.
func (t *productParts) finite(p *part) bool {
	for i := range p.hi - p.lo {
		if sum := t.set.sum(p.lines[i*t.rowsOf*tileColumns:][:len(p.rows)*tileColumns]); sum-sum != 0 {
			return false
		}
	}
	return true
}

// store brings the sums of p to C.
func (t *productParts) store(s *scratch, p *part) {
	t.open(s, p)
	if !t.turned {
		t.copyLines(s, p)
	}
	t.finish(p)
}

// storeCells is store for what of p is finite, a panel and partRows rows at a time,
// and notes what is not.
func (t *productParts) storeCells(s *scratch, p *part) {
	for panel := p.lo; panel < p.hi; panel++ {
		for row := 0; row < len(p.rows); row += partRows {
			cell := part{lo: panel, hi: panel + 1, first: p.first + row, rows: p.rows[:min(partRows, len(p.rows)-row)]}
			cell.lines = p.lines[((panel-p.lo)*t.rowsOf+row)*tileColumns:]
			if slices.ContainsFunc(cell.lines[:len(cell.rows)*tileColumns], func(v float32) bool { return v-v != 0 }) {
				t.notFinite[panel*cells(t.left.count)+cell.first/partRows] = true
			} else {
				t.store(s, &cell)
			}
		}
	}
}

// multiply adds the products of chunks from the chunk from on to the lines of p,
// or sets them.
func (t *productParts) multiply(s *scratch, p *part, count, from, chunks int) {
	b, panelLen := t.cutRight, t.chunks*panelWords
	if b == nil {
		panelLen = chunks * panelWords
		b = s.image.floats((p.hi - p.lo) * panelLen)
		t.cutPanels(s, b, panelLen, p.lo, p.hi, from, chunks)
	} else {
		b = b[p.lo*panelLen+from*panelWords:]
	}
	u := &s.parts
	for row := 0; row < count; row += partRows {
		n := min(partRows, count-row)
		u.setRows(n, tileColumns*4)
		if t.cutLeft != nil {
			u.a = address(t.cutLeft, (p.first+row)*chunkWords(t.chunks)+3*from*n*tileColumns)
		} else {
			a := s.left.floats(n * chunkWords(chunks))
			t.cutRows(s, a, p.first+row, n, from, chunks)
			u.a = address(a, 0)
		}
		u.b, u.c = address(b, 0), address(p.lines, row*tileColumns)
		u.panels, u.chunks = p.hi-p.lo, chunks
		u.panelB, u.panelC = panelLen*4, t.rowsOf*tileColumns*4
		if from > 0 {
			u.accumulate = 1
		}
		t.set.parts.run(u, 1)
	}
}

// cutRows cuts chunks of n rows of the left side from the row first on.
func (t *productParts) cutRows(s *scratch, a []float32, first, n, from, chunks int) {
	left := &t.left
	part := n * tileColumns
	k, end := from*partDepth, min((from+chunks)*partDepth, t.d.K)
	if left.along {
		data, stride := left.rows(&s.wide, first, n, k, end)
		for ; k+partDepth <= end; k += partDepth {
			t.set.parts.split(a, data, data[half:], stride, part, n)
			a, data = a[3*part:], data[min(partDepth, len(data)):]
		}
		if k < end {
			stage := s.winograd.temporary.floats(partRows * partDepth)[:n*partDepth]
			for i := range n {
				line := stage[i*partDepth:][:partDepth]
				clear(line[copy(line, data[i*stride:][:end-k]):])
			}
			t.set.parts.split(a, stage, stage[half:], partDepth, part, n)
		}
		return
	}
	squares := s.winograd.temporary.floats(2 * partRows * tileColumns)
	for ; k < end; k += partDepth {
		data, stride := left.rows(&s.wide, k, min(partDepth, end-k), first, first+n)
		for h := range 2 {
			square, width := squares[h*part:][:part], min(half, end-k-h*half)
			if width <= 0 {
				clear(square)
				continue
			}
			packTransposed(t.set, square, data[h*half*stride:], stride, n, width)
		}
		t.set.parts.split(a, squares, squares[part:], tileColumns, part, n)
		a = a[3*part:]
	}
}

// cutPanels cuts chunks of panels [lo, hi) of the right side, which go to dst,
// panelLen words apart.
func (t *productParts) cutPanels(s *scratch, dst []float32, panelLen, lo, hi, from, chunks int) {
	right := &t.right
	k, end := from*partDepth, min((from+chunks)*partDepth, t.d.K)
	if !right.along {
		for c := range chunks {
			t.cutLines(s, dst[c*panelWords:], panelLen, lo, hi, k+c*partDepth, min(partDepth, end-k-c*partDepth))
		}
		return
	}
	for p := lo; p < hi; p++ {
		column := p * tileColumns
		width := min(tileColumns, right.count-column)
		data, stride := right.rows(&s.wide, column, width, k, end)
		lines := s.winograd.whole.floats(chunks * partDepth * tileColumns)
		packTransposed(t.set, lines, data, stride, end-k, width)
		clear(lines[(end-k)*tileColumns:])
		for c := range chunks {
			line := lines[c*partDepth*tileColumns:]
			t.set.parts.split(dst[(p-lo)*panelLen+c*panelWords:], line, line[half*tileColumns:], tileColumns, panelWords/3, half)
		}
	}
}

// cutLines cuts n lines of a right side that is not along, a chunk or its rest, from
// line k on: panel by panel, for which it then lies in the first-level cache.
func (t *productParts) cutLines(s *scratch, dst []float32, panelLen, lo, hi, k, n int) {
	lines, stride := t.right.rows(&s.wide, k, n, lo*tileColumns, min(hi*tileColumns, t.right.count))
	for p := lo; p < hi; p++ {
		data, step := lines[(p-lo)*tileColumns:], stride
		if width := min(tileColumns, t.right.count-p*tileColumns); n < partDepth || width < tileColumns {
			stage := s.winograd.whole.floats(partDepth * tileColumns)[:partDepth*tileColumns]
			for i := range n {
				line := stage[i*tileColumns:][:tileColumns]
				clear(line[copy(line, data[i*stride:][:width]):])
			}
			clear(stage[n*tileColumns:])
			data, step = stage, tileColumns
		}
		t.set.parts.split(dst[(p-lo)*panelLen:], data, data[half*step:], step, panelWords/3, half)
	}
}

// copyLines brings the lines of p to p.c, with what a tile would do there.
func (t *productParts) copyLines(s *scratch, p *part) {
	column := p.lo * tileColumns
	columns := min(p.hi*tileColumns, t.right.count) - column
	sums := s.left.floats((p.hi - p.lo) * tileColumns)
	for i := range p.rows {
		line := p.c[i*p.ldc:][:columns]
		to := line
		if t.d.Accumulate {
			to = sums
		}
		for q := range columns / tileColumns {
			*(*[tileColumns]float32)(to[q*tileColumns:]) = [tileColumns]float32(p.lines[(q*t.rowsOf+i)*tileColumns:])
		}
		if rest := columns % tileColumns; rest > 0 {
			q := columns / tileColumns
			copy(to[q*tileColumns:][:rest], p.lines[(q*t.rowsOf+i)*tileColumns:])
		}
		if t.d.Accumulate {
			t.set.add(line, line, sums[:columns])
		}
		if t.bias != nil {
			t.set.add(line, line, t.bias[column:][:columns])
		}
		if t.d.Activation == device.ReLU {
			t.set.relu(line, line)
		}
	}
}
