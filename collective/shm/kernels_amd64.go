//go:build linux

package shm

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/gradfusion/gradfusion/device"
)

//go:noescape
func sumF32AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func sumF64AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func sumI32AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func sumI64AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func sumF16AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func sumBF16AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

//go:noescape
func copyPastCacheAVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func exchangeAVX2(dst, src, dst2, src2 unsafe.Pointer, n int)

//go:noescape
func copyAheadAVX2(dst, src unsafe.Pointer, n int)

// sumKernel returns the kernel that adds vectors of a type, or nil.
func sumKernel(t device.Type) func(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int) {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	switch t {
	case device.F32:
		return sumF32AVX2
	case device.F64:
		return sumF64AVX2
	case device.I32:
		return sumI32AVX2
	case device.I64:
		return sumI64AVX2
	case device.BF16:
		return sumBF16AVX2
	case device.F16:
		if cpu.X86.HasF16C {
			return sumF16AVX2
		}
	}
	return nil
}

// copyPastCache copies whole blocks without reading the destination first, and
// returns how many bytes that were.
func copyPastCache(dst, src []byte) int {
	n := len(src) / kernelBlock * kernelBlock
	if n == 0 || !cpu.X86.HasAVX2 {
		return 0
	}
	copyPastCacheAVX2(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), n)
	return n
}

// copyAhead copies whole blocks, fetching the source early, and returns how many
// bytes that were.
func copyAhead(dst, src []byte) int {
	n := len(src) / kernelBlock * kernelBlock
	if n == 0 || !cpu.X86.HasAVX2 {
		return 0
	}
	copyAheadAVX2(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), n)
	return n
}

// exchange copies whole blocks of two vectors of one length side by side, and
// returns how many bytes of each that were. src will be written to next.
func exchange(dst, src, dst2, src2 []byte) int {
	n := len(src) / kernelBlock * kernelBlock
	if n == 0 || !cpu.X86.HasAVX2 {
		return 0
	}
	exchangeAVX2(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)),
		unsafe.Pointer(unsafe.SliceData(dst2)), unsafe.Pointer(unsafe.SliceData(src2)), n)
	return n
}
