package cpu

// packTask brings a side of a product into panels of 16 vectors:
// [count/16][depth][16], zero beyond the last vector. A part is a panel when
// vectors are stored one after another, else a run of lines of all panels.
type packTask struct {
	set   *kernelSet
	dst   []float32
	src   side
	depth int
}

// packLines is how many lines one part packs.
const packLines = 32

func (t *packTask) parts() int {
	if t.src.along {
		return panels(t.src.count)
	}
	return (t.depth + packLines - 1) / packLines
}

func (t *packTask) do(s *scratch, index int) {
	if t.src.along {
		t.pack(s, t.dst[index*t.depth*tileColumns:], index, index+1, 0, t.depth)
		return
	}
	t.pack(s, t.dst, 0, panels(t.src.count), index*packLines, min(t.depth, (index+1)*packLines))
}

// pack packs lines [from, to) of panels [lo, hi) into dst, which starts with
// panel lo.
func (t *packTask) pack(s *scratch, dst []float32, lo, hi, from, to int) {
	if from == to {
		return // an empty src has no vectors to start at
	}
	if t.src.along {
		for p := lo; p < hi; p++ {
			n := min(tileColumns, t.src.count-p*tileColumns)
			for k := from; k < to; k += packDepth {
				end := min(k+packDepth, to)
				data, stride := t.src.rows(&s.wide, p*tileColumns, n, k, end)
				packTransposed(t.set, dst[((p-lo)*t.depth+k)*tileColumns:], data, stride, end-k, n)
			}
		}
		return
	}
	for ; from < to; from += packLines {
		n := min(packLines, to-from)
		for p := lo; p < hi; p += packWidth {
			t.packRun(s, dst[((p-lo)*t.depth+from)*tileColumns:], p, min(hi, p+packWidth), from, n)
		}
	}
}

// packRun packs n lines, from the line from on, of panels [lo, hi).
func (t *packTask) packRun(s *scratch, dst []float32, lo, hi, from, n int) {
	end := min(hi*tileColumns, t.src.count)
	data, stride := t.src.rows(&s.wide, from, n, lo*tileColumns, end)
	whole := (end - lo*tileColumns) / tileColumns
	t.set.lines(dst, data, stride, t.depth*tileColumns, n, whole)
	if width := (end - lo*tileColumns) % tileColumns; width > 0 {
		for k := range n {
			line := dst[(whole*t.depth+k)*tileColumns:][:tileColumns]
			clear(line[copy(line, data[k*stride+whole*tileColumns:][:width]):])
		}
	}
}

// rowBlocksTask turns a left side whose vectors are side by side into blocks of
// rowsOf rows: [count/rowsOf][depth/16][rowsOf][16]. Part i is 16 steps.
type rowBlocksTask struct {
	set    *kernelSet
	dst    []float32
	src    side
	depth  int
	rowsOf int
}

func (t *rowBlocksTask) do(s *scratch, index int) {
	width := min(tileColumns, t.depth-index*tileColumns)
	for first := 0; first < t.src.count; first += t.rowsOf {
		dst := t.dst[(first*panels(t.depth)+index*t.rowsOf)*tileColumns:]
		n := min(t.rowsOf, t.src.count-first)
		data, stride := t.src.rows(&s.wide, index*tileColumns, width, first, first+n)
		packTransposed(t.set, dst, data, stride, n, width)
	}
}

// What one call of lines or transpose moves at most, as maxTileWork for a tile.
const (
	packWidth = 64   // panels, of packLines lines
	packDepth = 4096 // floats of a vector, a multiple of 16
)

// packTransposed sets dst[k][i] = src[i][k] for i below width and 0 above.
func packTransposed(set *kernelSet, dst, src []float32, stride, n, width int) {
	if width == tileColumns {
		set.transpose(dst, src, stride, n)
		return
	}
	// A square is staged, with zeros for what is missing, where the next one will
	// be written.
	k := 0
	for ; k+2*tileColumns <= n; k += tileColumns {
		stage := dst[(k+tileColumns)*tileColumns:][:tileColumns*tileColumns]
		for i := range width {
			*(*[tileColumns]float32)(stage[i*tileColumns:]) = *(*[tileColumns]float32)(src[i*stride+k:])
		}
		clear(stage[width*tileColumns:])
		set.transpose(dst[k*tileColumns:], stage, tileColumns, tileColumns)
	}
	clear(dst[k*tileColumns : n*tileColumns])
	for i := range width {
		for j, v := range src[i*stride+k : i*stride+n] {
			dst[(k+j)*tileColumns+i] = v
		}
	}
}

// panels returns how many panels n columns take.
func panels(n int) int { return (n + tileColumns - 1) / tileColumns }

// padBias returns bias with zeros up to whole panels.
func padBias(m *memory, bias []float32) []float32 {
	out := m.floats(panels(len(bias)) * tileColumns)
	clear(out[copy(out, bias):])
	return out
}
