package cpu

import "unsafe"

func apartFast(t *tile) {
	if t.singles == 0 {
		portableApart(t)
		return
	}
	t.groups = t.count
	apartAVX2((*uint64)(unsafe.Pointer(t)))
}

func untransposeFast(dst, src []float32, stride, n int, accumulate bool) {
	vectors := n &^ 7
	if vectors > 0 {
		untransposeAVX2(first(dst), first(src), stride*4, vectors, flag(accumulate))
	}
	portableUntranspose(dst[vectors:], src[vectors*block:], stride, n-vectors, block, accumulate)
}
