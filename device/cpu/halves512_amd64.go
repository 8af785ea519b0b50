package cpu

import "unsafe"

// halvesWide gives the assembly whole vectors of sixteen, and the rest to narrower
// kernels.
func halvesWide(widen func(dst *float32, src *uint16, n int), narrow func(dst *uint16, src *float32, n int), rest halfKernels) halfKernels {
	return halfKernels{
		widen: func(dst []float32, src []uint16) {
			n := len(src) &^ 15
			widen(first(dst), unsafe.SliceData(src), n)
			if n < len(src) {
				rest.widen(dst[n:], src[n:])
			}
		},
		add: rest.add,
		narrow: func(dst []uint16, src []float32) {
			n := len(src) &^ 15
			narrow(unsafe.SliceData(dst), first(src), n)
			if n < len(src) {
				rest.narrow(dst[n:], src[n:])
			}
		},
	}
}
