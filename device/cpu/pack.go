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

func (t *packTask) do(_ *scratch, index int) {
	if t.src.along {
		u := *t
		u.dst = t.dst[index*t.depth*tileColumns:]
		u.pack(index, index+1, 0, t.depth)
		return
	}
	t.pack(0, panels(t.src.count), index*packLines, min(t.depth, (index+1)*packLines))
}

// pack packs lines [from, to) of panels [lo, hi); dst starts with panel lo.
func (t *packTask) pack(lo, hi, from, to int) {
	if from == to {
		return // an empty src has no vectors to start at
	}
	whole := min(hi, t.src.count/tileColumns)
	width := t.src.count % tileColumns // of the last panel, when it is not whole
	if t.src.along {
		for p := lo; p < hi; p++ {
			n := tileColumns
			if p >= whole {
				n = width
			}
			for k := from; k < to; k += packDepth {
				packTransposed(t.set, t.dst[((p-lo)*t.depth+k)*tileColumns:], t.src.data[p*tileColumns*t.src.stride+k:], t.src.stride, min(packDepth, to-k), n)
			}
		}
		return
	}
	for ; from < to; from += packLines {
		n := min(packLines, to-from)
		for p := lo; p < whole; p += packWidth {
			t.set.lines(t.dst[((p-lo)*t.depth+from)*tileColumns:], t.src.data[from*t.src.stride+p*tileColumns:],
				t.src.stride, t.depth*tileColumns, n, min(packWidth, whole-p))
		}
		if whole < hi {
			for k := from; k < from+n; k++ {
				line := t.dst[((whole-lo)*t.depth+k)*tileColumns:][:tileColumns]
				clear(line[copy(line, t.src.data[k*t.src.stride+whole*tileColumns:][:width]):])
			}
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

func (t *rowBlocksTask) do(_ *scratch, index int) {
	width := min(tileColumns, t.depth-index*tileColumns)
	for first := 0; first < t.src.count; first += t.rowsOf {
		dst := t.dst[(first*panels(t.depth)+index*t.rowsOf)*tileColumns:]
		src := t.src.data[index*tileColumns*t.src.stride+first:]
		packTransposed(t.set, dst, src, t.src.stride, min(t.rowsOf, t.src.count-first), width)
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
