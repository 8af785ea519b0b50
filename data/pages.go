package data

import "unsafe"

// hugePage is the size that large memory is laid out for.
const hugePage = 2 << 20

// room returns n zeros. Much of it starts on a huge page, so that to write it first
// costs one fault for each of them, and not 512.
func room[T byte | float32](n int) []T {
	var one T
	each := int(unsafe.Sizeof(one))
	if n < 2*hugePage/each {
		return make([]T, n)
	}
	all := make([]T, n+hugePage/each)
	skip := (-int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (hugePage - 1)) / each
	out := all[skip : skip+n : skip+n]
	advise(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), n*each/hugePage*hugePage))
	return out
}
