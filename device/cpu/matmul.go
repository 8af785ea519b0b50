package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

const (
	// productRows is how many rows of A stay in the second-level cache while
	// the panels of B pass by.
	productRows = 96
	// productDepth is the most steps of one pass: a panel of B that deep fills
	// 32 KB.
	productDepth = 512
)

// productTask computes C block by block: part i is a block of productRows rows
// and a run of panels.
type productTask struct {
	set          *kernelSet
	d            device.MatMul
	a, b, c      []float32
	bias         []float32 // whole panels, or nil
	lda, ldc     int
	rows         []row
	steps        []int64
	packedA      bool // a is in panels
	depth        int  // steps of one pass
	panels       int
	groups       int
	lastMask     columnMask
	lastIsNarrow bool
}

func (k *kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	d.Check()
	an, bn, cn := d.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.Require("MatMul", "a", a, device.F32, an)
	device.Require("MatMul", "b", b, device.F32, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
	}
	if d.M == 0 || d.N == 0 {
		return
	}
	w := k.take()
	lda, ldb, ldc := d.Strides()
	w.pack = packTask{
		set: k.set, dst: w.packed.floats(panels(d.N) * d.K * tileColumns), src: b.F32(),
		rows: d.K, columns: d.N, stride: ldb, transpose: d.TransB,
	}
	k.pool.run(w, &w.pack, panels(d.N))
	t := &w.product
	*t = productTask{set: k.set, d: d, a: a.F32(), b: w.pack.dst, c: c.F32(), lda: lda, ldc: ldc, panels: panels(d.N)}
	if d.TransA {
		w.pack = packTask{
			set: k.set, dst: w.left.floats(panels(d.M) * d.K * tileColumns), src: a.F32(),
			rows: d.K, columns: d.M, stride: lda,
		}
		k.pool.run(w, &w.pack, panels(d.M))
		t.a, t.packedA = w.pack.dst, true
	}
	if !bias.IsZero() {
		t.bias = padBias(&w.bias, bias.F32()[:d.N])
	}
	t.tables(w)
	blocks := (d.M + productRows - 1) / productRows
	t.groups = min(t.panels, max(1, (4*k.pool.threads+blocks-1)/blocks))
	if k.pool.threads == 1 {
		t.groups = 1
	}
	k.pool.run(w, t, blocks*t.groups)
	*t, w.pack = productTask{}, packTask{}
	k.give(w)
}

// tables fills in the rows of one block and the steps of one pass.
func (t *productTask) tables(w *workspace) {
	t.depth = t.d.K
	if passes := (t.d.K + productDepth - 1) / productDepth; passes > 1 {
		// Even passes of whole blocks: 784 is 400 and 384.
		t.depth = ((t.d.K+passes-1)/passes + tileColumns - 1) / tileColumns * tileColumns
	}
	w.rows = grow(w.rows, min(productRows, t.d.M))
	w.steps = grow(w.steps, t.depth)
	t.rows, t.steps = w.rows, w.steps
	for i := range t.rows {
		t.rows[i] = row{int64(i * t.lda * 4), int64(i * t.ldc * 4)}
		if t.packedA {
			t.rows[i].a = int64((i/tileColumns*t.d.K*tileColumns + i%tileColumns) * 4)
		}
	}
	blocks, _ := t.split(t.depth)
	for s := range t.steps {
		switch {
		case t.packedA:
			t.steps[s] = int64(s * tileColumns * 4)
		case s < blocks:
			t.steps[s] = int64(s * tileColumns * 4)
		default:
			t.steps[s] = int64((blocks*tileColumns + s - blocks) * 4)
		}
	}
	t.lastIsNarrow = t.lastMask.last(t.d.N)
}

// split cuts a depth into steps of 16 and of 1.
func (t *productTask) split(depth int) (blocks, singles int) {
	if t.packedA {
		return 0, depth
	}
	return depth / tileColumns, depth % tileColumns
}

func (t *productTask) do(s *scratch, index int) {
	first := index / t.groups * productRows
	rows := t.rows[:min(productRows, t.d.M-first)]
	group := index % t.groups
	lo, hi := group*t.panels/t.groups, (group+1)*t.panels/t.groups
	at := first * t.lda
	step := 1
	if t.packedA {
		at, step = first*t.d.K, tileColumns
	}
	for k, last := 0, false; !last; k += t.depth {
		depth := min(t.depth, t.d.K-k)
		last = k+depth == t.d.K
		u := tile{a: address(t.a, at+k*step)}
		u.blocks, u.singles = t.split(depth)
		if k > 0 || t.d.Accumulate {
			u.flags = flagAccumulate
		}
		if last && t.d.Activation == device.ReLU {
			u.flags |= flagReLU
		}
		t.pass(s, u, rows, first, k, lo, hi, last)
	}
	t.activate(first, len(rows), lo*tileColumns, min(hi*tileColumns, t.d.N))
}

// pass adds the products of u's steps, which start at k, to panels [lo, hi).
func (t *productTask) pass(s *scratch, u tile, rows []row, first, k, lo, hi int, last bool) {
	// A short pass after longer ones has its singles where theirs had blocks.
	steps := t.steps
	if u.singles > 0 && !t.packedA && last && k > 0 {
		steps = s.shortSteps(u.blocks, u.singles)
	}
	s.tile = u
	s.tile.steps = unsafe.Pointer(unsafe.SliceData(steps))
	s.tile.strideB, s.tile.strideC = t.d.K*tileColumns*4, tileColumns*4
	for p := lo; p < hi; p += tilePanels {
		s.tile.panels = min(tilePanels, hi-p)
		s.tile.b = address(t.b, (p*t.d.K+k)*tileColumns)
		s.tile.c = address(t.c, first*t.ldc+p*tileColumns)
		if last && t.bias != nil {
			s.tile.bias = address(t.bias, p*tileColumns)
		}
		if t.lastIsNarrow && p+s.tile.panels == t.panels {
			s.tile.flags |= flagMask
			s.tile.mask = unsafe.Pointer(&t.lastMask)
		}
		runTile(t.set.tile, &s.tile, rows)
	}
	s.tile = tile{}
}

// shortSteps returns a table of blocks steps of 16 and singles of 1 along a row.
func (s *scratch) shortSteps(blocks, singles int) []int64 {
	s.steps = grow(s.steps, blocks+singles)
	for i := range s.steps {
		s.steps[i] = int64(i * tileColumns * 4)
		if i > blocks {
			s.steps[i] = int64((blocks*tileColumns + i - blocks) * 4)
		}
	}
	return s.steps
}

// activate applies what the tile does not know to a finished block.
func (t *productTask) activate(first, rows, lo, hi int) {
	if t.d.Activation != device.Tanh && t.d.Activation != device.Sigmoid {
		return
	}
	for i := first; i < first+rows; i++ {
		line := t.c[i*t.ldc+lo : i*t.ldc+hi]
		activate(t.set, t.d.Activation, line, line)
	}
}

// rowSumsTask adds up the rows of a matrix; part p is 64 columns.
type rowSumsTask struct {
	out, a     []float32
	rows, cols int
	accumulate bool
}

const rowSumsColumns = 64

func (k *kernels) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	device.Require("SumRows", "out", out, device.F32, cols)
	device.Require("SumRows", "a", a, device.F32, rows*cols)
	w := k.take()
	w.rowSums = rowSumsTask{out.F32(), a.F32(), rows, cols, accumulate}
	k.pool.run(w, &w.rowSums, (cols+rowSumsColumns-1)/rowSumsColumns)
	w.rowSums = rowSumsTask{}
	k.give(w)
}

func (t *rowSumsTask) do(_ *scratch, index int) {
	lo := index * rowSumsColumns
	hi := min(lo+rowSumsColumns, t.cols)
	var sums [rowSumsColumns]float64
	for i := range t.rows {
		for j, v := range t.a[i*t.cols+lo : i*t.cols+hi] {
			sums[j] += float64(v)
		}
	}
	for j := lo; j < hi; j++ {
		v := float32(sums[j-lo])
		if t.accumulate {
			v += t.out[j]
		}
		t.out[j] = v
	}
}
