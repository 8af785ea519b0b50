package cpu

import "github.com/gradfusion/gradfusion/device"

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
