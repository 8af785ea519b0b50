package cpu

// transposeWide gives the assembly whole squares of 16.
func transposeWide(dst, src []float32, stride, n int) {
	whole := n &^ 15
	if whole > 0 {
		transposeAVX512(first(dst), first(src), stride*4, whole)
	}
	if whole < n {
		transposeFast(dst[whole*block:], src[whole:], stride, n-whole)
	}
}

func linesWide(dst, src []float32, stride, next, rows, count int) {
	if rows > 0 && count > 0 {
		linesAVX512(first(dst), first(src), stride*4, next*4, rows, count)
	}
}

func turnWide(c, src, bias []float32, stride, count, width, flags int) {
	turnAVX512(first(c), first(src), first(bias), stride*4, count, width, flags)
}
