package cpu

// packTask brings a matrix into panels of 16 columns: [columns/16][rows][16],
// zero beyond the last column. Part p is panel p.
type packTask struct {
	set       *kernelSet
	dst, src  []float32
	rows      int // of the packed matrix: the steps of the product
	columns   int
	stride    int  // elements from one stored row to the next
	transpose bool // src is stored [columns][rows]
}

func (t *packTask) do(_ *scratch, panel int) {
	if t.rows == 0 {
		return // an empty src has no rows to start at
	}
	dst := t.dst[panel*t.rows*tileColumns:][:t.rows*tileColumns]
	first := panel * tileColumns
	width := min(tileColumns, t.columns-first)
	if t.transpose {
		packTransposed(t.set, dst, t.src[first*t.stride:], t.stride, t.rows, width)
		return
	}
	for k := range t.rows {
		line := dst[k*tileColumns:][:tileColumns]
		clear(line[copy(line, t.src[k*t.stride+first:][:width]):])
	}
}

// packTransposed sets dst[k][i] = src[i][k] for i below width and 0 above.
func packTransposed(set *kernelSet, dst, src []float32, stride, n, width int) {
	if width == tileColumns {
		set.transpose(dst, src, stride, n)
		return
	}
	clear(dst[:n*tileColumns])
	for i := range width {
		for k, v := range src[i*stride : i*stride+n] {
			dst[k*tileColumns+i] = v
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
