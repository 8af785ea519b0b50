package cpu

import "unsafe"

// amxKernels are those of AVX-512 with products in parts on the matrix unit.
func amxKernels() *kernelSet {
	set := avx512Kernels()
	set.name = "amx"
	set.parts = partKernels{
		split: func(dst, from, second []float32, step, part, n int) {
			splitAVX512(first(dst), first(from), first(second), step*4, part*4, n)
		},
		splitRows: func(dst []float32, base unsafe.Pointer, steps *[2]int64, rows []row, part int) {
			splitRowsAVX512(first(dst), (*float32)(base), &steps[0], &rows[0].a, part*4, len(rows))
		},
		product: func(p *partsProduct) { partsProductAMX((*uint64)(unsafe.Pointer(p))) },
	}
	return set
}
