package cpu

import "github.com/gradfusion/gradfusion/device"

const (
	// columnsAtOnce is how many columns a part has at most: a long run of each row, which
	// the processor sees coming, for sums that stay in the first-level cache.
	columnsAtOnce = 768
	// columnsLeast is how many it has at least.
	columnsLeast = 64
)

// columnsEach is how many columns each part has: threads have equally many parts.
func columnsEach(columns, threads int) int {
	parts := (columns + columnsAtOnce - 1) / columnsAtOnce
	parts = (parts + threads - 1) / threads * threads
	each := (columns + parts - 1) / parts
	return max(columnsLeast, (each+tileColumns-1)/tileColumns*tileColumns)
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
	step := t.rows
	if t.a.halves != nil { // what is widened at once stays in the cache; addRows takes four
		step = max(4, 8<<10/len(out)/4*4)
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
