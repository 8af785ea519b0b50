//go:build amd64 || arm64

package cpu

import "unsafe"

// The functions here, and those of the instruction sets, give the assembly whole
// vectors of eight elements and the rest to the portable loops, which do the
// same operations. Slices are at most a few tens of thousands of elements long,
// so that no call holds up the garbage collector.

// first returns where s starts; it may be nil for an empty s.
func first(s []float32) *float32 { return unsafe.SliceData(s) }

// whole returns how many elements of s fill whole vectors.
func whole(s []float32) int { return len(s) &^ 7 }

func binaryFast(fast func(dst, a, b *float32, n int), rest func(dst, a, b []float32), dst, a, b []float32) {
	n := whole(a)
	fast(first(dst), first(a), first(b), n)
	if n < len(a) {
		rest(dst[n:], a[n:], b[n:])
	}
}

func halvesFast(widen, add func(dst *float32, src *uint16, n int), narrow func(dst *uint16, src *float32, n int), rest halfKernels) halfKernels {
	return halfKernels{
		widen: func(dst []float32, src []uint16) {
			n := len(src) &^ 7
			widen(first(dst), unsafe.SliceData(src), n)
			rest.widen(dst[n:], src[n:])
		},
		add: func(dst []float32, src []uint16) {
			n := len(src) &^ 7
			add(first(dst), unsafe.SliceData(src), n)
			rest.add(dst[n:], src[n:])
		},
		narrow: func(dst []uint16, src []float32) {
			n := whole(src)
			narrow(unsafe.SliceData(dst), first(src), n)
			rest.narrow(dst[n:], src[n:])
		},
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
