//go:build linux && (amd64 || arm64)

package shm

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

const (
	// kernelBlock is what kernels work in; what is left over goes the portable
	// way, which has the same results.
	kernelBlock = 128
	// kernelCall is how many bytes of each vector one call of a kernel handles:
	// it cannot be interrupted, and the garbage collector waits for it.
	kernelCall = 128 << 10
	// foldBlock is the portable way's step, small enough for the first cache.
	foldBlock = 16 << 10
)

type kernel = func(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)

// arithmetic reduces vectors of several ranks; its memory is reused.
type arithmetic struct {
	dsts, srcs [][]byte // what combine works on
	dst, src   []unsafe.Pointer
	parts      []device.Buf
	result     []byte
}

func newArithmetic(ranks int) arithmetic {
	return arithmetic{
		dsts: make([][]byte, 0, ranks), srcs: make([][]byte, 0, ranks),
		dst: make([]unsafe.Pointer, ranks), src: make([]unsafe.Pointer, ranks),
		parts: make([]device.Buf, ranks), result: make([]byte, foldBlock),
	}
}

// combine reduces srcs in order and stores the result in all dsts, which may be
// the srcs themselves. All have one length.
func (a *arithmetic) combine(c *collective.DirectCall) {
	if len(a.dsts) == 0 || len(a.srcs[0]) == 0 {
		return
	}
	done := 0
	if k := sumKernel(c.Type); k != nil && c.Op == collective.Sum {
		done = len(a.srcs[0]) / kernelBlock * kernelBlock
		for lo := 0; lo < done; lo += kernelCall {
			a.point(lo)
			k(&a.dst[0], len(a.dsts), &a.src[0], len(a.srcs), min(kernelCall, done-lo))
		}
	}
	for lo := done; lo < len(a.srcs[0]); lo += foldBlock {
		a.fold(c, lo, min(lo+foldBlock, len(a.srcs[0])))
	}
}

// point has the kernels' addresses at byte lo of all vectors.
func (a *arithmetic) point(lo int) {
	for i, b := range a.dsts {
		a.dst[i] = unsafe.Pointer(&b[lo])
	}
	for i, b := range a.srcs {
		a.src[i] = unsafe.Pointer(&b[lo])
	}
}

func (a *arithmetic) fold(c *collective.DirectCall, lo, hi int) {
	for i, b := range a.srcs {
		a.parts[i] = device.FromBytes(c.Type, b[lo:hi])
	}
	result := a.result[:hi-lo]
	c.Fold(device.FromBytes(c.Type, result), a.parts[:len(a.srcs)])
	for _, b := range a.dsts {
		copy(b[lo:hi], result)
	}
}

// pastCacheFrom is the length from which a copy to memory that is not in the
// cache is better off not putting it there.
const pastCacheFrom = 1 << 20

// transfer copies src to dst, of a whole of that many bytes. Large ones go past
// the cache.
func transfer(dst, src []byte, whole int) {
	if whole >= pastCacheFrom {
		if skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % 32); skip < len(src) {
			copy(dst[:skip], src)
			dst, src = dst[skip:], src[skip:]
		}
		for len(src) >= kernelBlock {
			n := copyPastCache(dst, src[:min(len(src), kernelCall)])
			if n == 0 {
				break
			}
			dst, src = dst[n:], src[n:]
		}
	}
	for len(src) > 0 {
		n := copy(dst, src[:min(len(src), kernelCall)])
		dst, src = dst[n:], src[n:]
	}
}
