package cpu

import "unsafe"

// Columns of a tile, and steps that one entry of a step table may stand for.
const tileColumns = 16

// row tells where a row of a tile starts, in bytes from tile.a and tile.c.
type row struct{ a, c int64 }

// tile describes the product that all matrix products and convolutions run on:
//
//	C[i][j] (+)= sum over k of A[rows[i].a + step(k)] * B[k][j],  0 <= j < 16
//
// for one panel, or for several that lie strideB and strideC bytes apart and
// share A: kernels that compute two at once load A half as often. Each of the
// first blocks entries of steps stands for 16 consecutive floats of A, each of
// the next singles entries for one. B is packed: 16 floats for every k. Every
// element is one chain of sums in the order of k, so that its bits do not
// depend on its row, on how rows and panels are grouped, or on the mask.
//
// The assembly reads the fields at fixed offsets: TestTileOffsets holds them.
type tile struct {
	a, b, c unsafe.Pointer
	rows    unsafe.Pointer // of row
	steps   unsafe.Pointer // of int64
	bias    unsafe.Pointer // 16 floats for each panel, added to every row, or nil
	mask    unsafe.Pointer // 16 int32, -1 for the columns that C has in the last panel; with flagMask and flagClear
	blocks  int
	singles int
	size    int // rows in a full group
	groups  int // row groups
	small   int // how many of the last groups have size-1 rows
	flags   int
	strideB int // bytes from a panel of B to the next
	strideC int
	panels  int // 0 means 1
	count   int // rows
}

// The flags of a tile, in the order in which they act.
const (
	flagAccumulate = 1 << iota // add what C holds
	flagReLU                   // after the bias
	flagMask                   // touch only the columns that mask has
	flagClear                  // store zero in the columns that mask has not; not together with flagMask
)

// setRows cuts the rows evenly into groups of at most most: 32 becomes 6 6 5 5
// 5 5, because a group of few rows cannot hide the latency of its sums.
func (t *tile) setRows(most int) {
	t.groups = (t.count + most - 1) / most
	if t.groups == 0 {
		return
	}
	t.size = (t.count + t.groups - 1) / t.groups
	t.small = t.groups*t.size - t.count
}

// each computes t by calls of f, which takes at most width panels and groups of
// at most rows rows.
func (t *tile) each(width, rows int, f func(*tile)) {
	t.setRows(rows)
	if t.panels <= width {
		f(t)
		return
	}
	all := *t
	for p := 0; p < all.panels; p += width {
		t.panels = min(width, all.panels-p)
		t.b, t.c = unsafe.Add(all.b, p*all.strideB), unsafe.Add(all.c, p*all.strideC)
		if all.bias != nil {
			t.bias = unsafe.Add(all.bias, p*tileColumns*4)
		}
		t.flags = all.flags
		if p+width < all.panels {
			t.flags &^= flagMask | flagClear
		}
		f(t)
	}
	*t = all
}

// columnMask is a mask of a last panel.
type columnMask [tileColumns]int32

// last makes m the mask of the last panel of n columns, and reports whether
// that panel is narrow.
func (m *columnMask) last(n int) bool {
	for j := range m {
		m[j] = 0
		if j < n-(panels(n)-1)*tileColumns {
			m[j] = -1
		}
	}
	return n%tileColumns != 0
}

// tilePanels is how many panels callers should give to a tile at once.
const tilePanels = 2

// tileRows is a multiple of the rows of a full group in every kernel set.
const tileRows = 12

// maxTileWork bounds rows * k of one call: the garbage collector cannot stop
// assembly, so a call has to end within about 50 microseconds.
const maxTileWork = 1 << 17

// runTile computes n rows with t, a few at a time. t.a, t.b and so on are set;
// rows is the table.
func runTile(f func(*tile), t *tile, rows []row) {
	k := max(1, t.blocks*tileColumns+t.singles)
	batch := max(tileRows, maxTileWork/k/tileRows*tileRows)
	for len(rows) > 0 {
		n := min(batch, len(rows))
		t.rows = unsafe.Pointer(unsafe.SliceData(rows))
		t.count = n
		f(t)
		rows = rows[n:]
	}
}

// portableTile computes a tile of one panel, two rows by four columns at a time.
func portableTile(t *tile) {
	n := t.count
	rows := unsafe.Slice((*row)(t.rows), n)
	steps := unsafe.Slice((*int64)(t.steps), t.blocks+t.singles)
	for i := 0; i < n; i += 2 {
		first, second := rows[i], rows[min(i+1, n-1)]
		for j := 0; j < tileColumns; j += 4 {
			sums := t.twoByFour(steps, first.a, second.a, j)
			t.finish(first.c, j, (*[4]float32)(sums[:4]))
			if i+1 < n {
				t.finish(second.c, j, (*[4]float32)(sums[4:]))
			}
		}
	}
}

// twoByFour returns the sums of columns [j, j+4) of two rows.
func (t *tile) twoByFour(steps []int64, first, second int64, j int) [8]float32 {
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	// An offset and no pointer moves on: after the last line it would point behind
	// the memory, which the garbage collector does not forgive.
	at := j * 4
	for s, step := range steps {
		count := 1
		if s < t.blocks {
			count = tileColumns
		}
		x := unsafe.Slice((*float32)(unsafe.Add(t.a, first+step)), count)
		y := unsafe.Slice((*float32)(unsafe.Add(t.a, second+step)), count)
		for k, u := range x {
			v := y[k]
			w := (*[4]float32)(unsafe.Add(t.b, at))
			c00 += float32(u * w[0])
			c01 += float32(u * w[1])
			c02 += float32(u * w[2])
			c03 += float32(u * w[3])
			c10 += float32(v * w[0])
			c11 += float32(v * w[1])
			c12 += float32(v * w[2])
			c13 += float32(v * w[3])
			at += tileColumns * 4
		}
	}
	return [8]float32{c00, c01, c02, c03, c10, c11, c12, c13}
}

// finish stores four sums of the row at byte offset c.
func (t *tile) finish(c int64, j int, sums *[4]float32) {
	for i, v := range sums {
		outside := t.flags&(flagMask|flagClear) != 0 && *(*int32)(unsafe.Add(t.mask, (j+i)*4)) == 0
		if outside && t.flags&flagClear == 0 {
			continue // the column may lie behind the memory: no pointer to it may exist
		}
		at := (*float32)(unsafe.Add(t.c, int(c)+(j+i)*4))
		if outside {
			*at = 0
			continue
		}
		if t.flags&flagAccumulate != 0 {
			v += *at
		}
		if t.bias != nil {
			v += *(*float32)(unsafe.Add(t.bias, (j+i)*4))
		}
		if t.flags&flagReLU != 0 && v < 0 {
			v = 0
		}
		*at = v
	}
}
