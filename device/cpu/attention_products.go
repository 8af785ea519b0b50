package cpu

import "unsafe"

// tokenPanels packs a head's lines of all tokens, 16 tokens a panel:
// [tokens/16][width][16].
func (t *attentionHead) tokenPanels(m *memory, src []float32) []float32 {
	out := m.floats(panels(t.d.Length) * t.width * tileColumns)
	for p := range panels(t.d.Length) {
		first := p * tileColumns
		packTransposed(t.set, out[first*t.width:], src[first*t.wide:], t.wide, t.width, min(tileColumns, t.d.Length-first))
	}
	return out
}

// linePanels packs n lines of the head, 16 floats a panel: [width/16][n][16].
func (t *attentionHead) linePanels(m *memory, src []float32, stride, n int) []float32 {
	out := m.floats(panels(t.width) * n * tileColumns)
	whole := t.width / tileColumns
	t.set.lines(out, src, stride, n*tileColumns, n, whole)
	if !t.narrow {
		return out
	}
	first := whole * tileColumns
	for i := range n {
		line := out[(whole*n+i)*tileColumns:][:tileColumns]
		clear(line[copy(line, src[i*stride+first:][:t.width-first]):])
	}
	return out
}

// products sets scores[i][j] to the product of line i at a, of n, and token j,
// for whole panels of tokens up to limit.
func (t *attentionHead) products(m *memory, a unsafe.Pointer, stride int, tokens []float32, n, limit int) []float32 {
	scores := m.floats(n * t.stride)
	u := &t.s.tile
	*u = tile{a: a}
	t.setSteps(u, t.width)
	rows := t.m.table(&t.m.left, n, stride, t.stride)
	u.b, u.strideB = address(tokens, 0), t.width*tileColumns*4
	u.c, u.strideC = address(scores, 0), tileColumns*4
	u.panels = panels(limit)
	runTile(t.set.tile, u, rows)
	return scores
}

// combine sets line i at c to the sum over tokens j below limit of
// scores[i][j] * lines[j].
func (t *attentionHead) combine(c unsafe.Pointer, stride int, scores, lines []float32, n, limit, flags int) {
	u := &t.s.tile
	*u = tile{a: address(scores, 0), flags: flags}
	t.setSteps(u, limit)
	t.eachPanel(u, c, t.m.table(&t.m.left, n, t.stride, stride), lines, t.d.Length)
}

// spread sets the gradient of each token j below limit, at c, to the sum over n
// queries i of scores[i][j] * lines[i].
func (t *attentionHead) spread(c unsafe.Pointer, scores, lines []float32, n, limit, flags int) {
	u := &t.s.tile
	t.m.down = grow(t.m.down, n)
	for i := range t.m.down {
		t.m.down[i] = int64(i * t.stride * 4)
	}
	*u = tile{a: address(scores, 0), flags: flags, singles: n, steps: unsafe.Pointer(unsafe.SliceData(t.m.down))}
	t.eachPanel(u, c, t.m.table(&t.m.right, limit, 1, t.wide), lines, n)
}

// eachPanel runs u for every panel of the head's floats; lines has depth lines.
func (t *attentionHead) eachPanel(u *tile, c unsafe.Pointer, rows []row, lines []float32, depth int) {
	u.b, u.strideB = address(lines, 0), depth*tileColumns*4
	u.c, u.strideC = c, tileColumns*4
	u.panels = panels(t.width)
	if t.narrow {
		u.flags |= flagMask
		u.mask = unsafe.Pointer(&t.mask)
	}
	runTile(t.set.tile, u, rows)
}

// setSteps makes u pass over n consecutive floats of a row.
func (t *attentionHead) setSteps(u *tile, n int) {
	u.blocks, u.singles = n/tileColumns, n%tileColumns
	t.m.along = grow(t.m.along, u.blocks+u.singles)
	for i := range t.m.along {
		at := i * tileColumns
		if i > u.blocks {
			at = u.blocks*tileColumns + i - u.blocks
		}
		t.m.along[i] = int64(at * 4)
	}
	u.steps = unsafe.Pointer(unsafe.SliceData(t.m.along))
}

// table returns n rows of the given strides, in floats.
func (m *attentionScratch) table(rows *[]row, n, a, c int) []row {
	*rows = grow(*rows, n)
	for i := range *rows {
		(*rows)[i] = row{int64(i * a * 4), int64(i * c * 4)}
	}
	return *rows
}
