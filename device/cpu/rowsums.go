package cpu

import "github.com/gradfusion/gradfusion/device"

// columnsAtOnce is how many columns a part has at most of which it passes all rows:
// long enough a run of each row for the processor to see it coming.
const columnsAtOnce = 128

// columnsEach is how many columns each part has: fewer where parts of the most would
// leave threads without work.
func columnsEach(columns, threads int) int {
	if parts := (columns + columnsAtOnce - 1) / columnsAtOnce; parts%threads != 0 && parts < 4*threads {
		return columnsAtOnce / 2
	}
	return columnsAtOnce
}

// rowSumsTask adds up the rows of a matrix; part p is each columns.
type rowSumsTask struct {
	set        *kernelSet
	each       int
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
	each := columnsEach(cols, k.pool.threads)
	w.rowSums = rowSumsTask{k.set, each, out.F32(), k.set.tensor(a), rows, cols, accumulate}
	k.pool.run(w, &w.rowSums, (cols+each-1)/each)
	w.rowSums = rowSumsTask{}
	k.give(w)
}

func (t *rowSumsTask) do(s *scratch, index int) {
	lo := index * t.each
	out := t.out[lo:min(lo+t.each, t.cols)]
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
