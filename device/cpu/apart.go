package cpu

import "unsafe"

// portableApart computes a tile whose 16 columns do not mix:
//
//	C[i][j] (+)= sum over k of A[rows[i].a + step(k)][j] * B[k][j], 0 <= j < 16
//
// with singles steps to lines of 16 floats. It knows bias and flagAccumulate.
func portableApart(t *tile) {
	rows := unsafe.Slice((*row)(t.rows), t.count)
	steps := unsafe.Slice((*int64)(t.steps), t.singles)
	for _, r := range rows {
		var sums [tileColumns]float32
		b := unsafe.Slice((*[tileColumns]float32)(t.b), t.singles)
		for k, step := range steps {
			a := (*[tileColumns]float32)(unsafe.Add(t.a, r.a+step))
			for j, w := range &b[k] {
				sums[j] += float32(a[j] * w)
			}
		}
		c := (*[tileColumns]float32)(unsafe.Add(t.c, r.c))
		if t.flags&flagAccumulate != 0 {
			for j := range sums {
				sums[j] += c[j]
			}
		}
		if t.bias != nil {
			for j, v := range (*[tileColumns]float32)(t.bias) {
				sums[j] += v
			}
		}
		*c = sums
	}
}
