package cpu

import "github.com/gradfusion/gradfusion/device"

// rowSumsColumns is how many columns a part has: long enough a run of each row
// for the processor to see it coming.
const rowSumsColumns = 128

// rowSumsTask adds up the rows of a matrix; part p is rowSumsColumns columns.
type rowSumsTask struct {
	set        *kernelSet
	out        []float32
	a          tensor
	rows, cols int
	accumulate bool
}

// SumRows adds in float64, one row after the other.
func (k *kernels) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	device.Require("SumRows", "out", out, device.F32, cols)
	device.RequireFloat("SumRows", "a", a, rows*cols)
	w := k.take()
	w.rowSums = rowSumsTask{k.set, out.F32(), k.set.tensor(a), rows, cols, accumulate}
	k.pool.run(w, &w.rowSums, (cols+rowSumsColumns-1)/rowSumsColumns)
	w.rowSums = rowSumsTask{}
	k.give(w)
}

func (t *rowSumsTask) do(s *scratch, index int) {
	lo := index * rowSumsColumns
	out := t.out[lo:min(lo+rowSumsColumns, t.cols)]
	s.sums = grow(s.sums, len(out))
	sums := s.sums
	clear(sums)
	const most = 64 // rows that are widened at once, a multiple of what addRows takes
	step := t.rows
	if t.a.halves != nil {
		step = most
	}
	for i := 0; i < t.rows; i += step {
		n := min(step, t.rows-i)
		rows, stride := t.a.rows(&s.wide, i*t.cols+lo, t.cols, n, len(out))
		t.set.addRows(sums, rows, stride, n)
	}
	for j, sum := range sums {
		v := float32(sum)
		if t.accumulate {
			v += out[j]
		}
		out[j] = v
	}
}
