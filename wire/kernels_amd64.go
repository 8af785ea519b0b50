package wire

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// kernels are the loops of this package in vectors. Each says how many values it
// has done, from the first on; where the processor has no AVX2 that is none.
type kernels struct{ avx2 bool }

func chosenKernels() kernels {
	x := &cpu.X86
	return kernels{x.HasAVX2 && x.HasF16C}
}

// whole is the part of n that is a multiple of a group.
func (k kernels) whole(n, group int) int {
	if !k.avx2 {
		return 0
	}
	return n - n%group
}

func (k kernels) narrow(bfloat bool, dst []byte, src []float32) int {
	n := k.whole(len(src), 8)
	if n == 0 {
		return 0
	}
	to, from := (*uint16)(unsafe.Pointer(&dst[0])), &src[0] // no alignment is needed
	if bfloat {
		narrowBF16AVX2(to, from, n)
	} else {
		narrowF16AVX2(to, from, n)
	}
	return n
}

func (k kernels) widen(bfloat bool, dst []float32, src []byte, add bool) int {
	n := k.whole(len(dst), 8)
	if n == 0 {
		return 0
	}
	to, from := &dst[0], (*uint16)(unsafe.Pointer(&src[0]))
	switch {
	case bfloat && add:
		addBF16AVX2(to, from, n)
	case bfloat:
		widenBF16AVX2(to, from, n)
	case add:
		addF16AVX2(to, from, n)
	default:
		widenF16AVX2(to, from, n)
	}
	return n
}

func (k kernels) add(dst, src []float32) int {
	n := k.whole(len(dst), 8)
	if n > 0 {
		addAVX2(&dst[0], &dst[0], &src[0], n)
	}
	return n
}

func (k kernels) dot(sums *[dotLanes]float32, a, b []float32) int {
	n := k.whole(len(a), dotLanes)
	if n > 0 {
		dotAVX2(&sums[0], &a[0], &b[0], n)
	}
	return n
}

func (k kernels) addScaled(dst, src []float32, s float32) int {
	n := k.whole(len(dst), 8)
	if n > 0 {
		addScaledAVX2(&dst[0], &src[0], n, s)
	}
	return n
}

func (k kernels) momentum(kept, velocity, x []float32, momentum float32, nesterov bool) int {
	n := k.whole(len(kept), 8)
	switch {
	case n == 0:
	case nesterov:
		nesterovAVX2(&kept[0], &velocity[0], &x[0], n, momentum)
	default:
		momentumAVX2(&kept[0], &velocity[0], &x[0], n, momentum)
	}
	return n
}

func (k kernels) largest(x []float32) uint32 {
	n := k.whole(len(x), 32)
	most := uint32(0)
	if n > 0 {
		most = largestAVX2(&x[0], n)
	}
	return max(most, largest(x[n:]))
}

// quantise encodes whole blocks.
func (k kernels) quantise(f *Blocks, dst []byte, src, kept []float32, r random) int {
	n := k.whole(len(src), f.size)
	bytes := f.encodedBlock(f.size)
	for lo := 0; lo < n; lo += f.size {
		block := dst[:bytes]
		dst = dst[bytes:]
		scale, inverse, state := f.scale(largestAVX2(&src[lo], f.size))
		if state != ordinary {
			var to []float32
			if kept != nil {
				to = kept[lo : lo+f.size]
			}
			f.encodeBlock(block, src[lo:lo+f.size], to, r, 0)
			continue
		}
		putScale(block, scale)
		q, x, counter := &block[scaleSize], &src[lo], uint32(lo/2)+r.first
		switch {
		case f.bits == 8 && kept == nil:
			quantise8AVX2(q, x, f.size, scale, inverse, counter, r.second)
		case f.bits == 8:
			keep8AVX2(q, x, &kept[lo], f.size, scale, inverse, counter, r.second)
		case kept == nil:
			quantise4AVX2(q, x, f.size, scale, inverse, counter, r.second)
		default:
			keep4AVX2(q, x, &kept[lo], f.size, scale, inverse, counter, r.second)
		}
	}
	return n
}

// expand decodes whole blocks.
func (k kernels) expand(f *Blocks, dst []float32, src []byte, add bool) int {
	n := k.whole(len(dst), f.size)
	bytes := f.encodedBlock(f.size)
	for lo := 0; lo < n; lo += f.size {
		scale, q, x := getScale(src), &src[scaleSize], &dst[lo]
		src = src[bytes:]
		switch {
		case f.bits == 8 && add:
			add8AVX2(x, q, f.size, scale)
		case f.bits == 8:
			expand8AVX2(x, q, f.size, scale)
		case add:
			add4AVX2(x, q, f.size, scale)
		default:
			expand4AVX2(x, q, f.size, scale)
		}
	}
	return n
}

// reachGroup is how many values are searched at once.
const reachGroup = 4096

// reaching appends the keys of the values whose magnitude's bits reach bound.
func (k kernels) reaching(keys []uint64, src []float32, bound uint32) []uint64 {
	n := k.whole(len(src), 32)
	if bound == 0 {
		n = 0 // all do
	}
	var marks [reachGroup / 32]uint32
	for lo := 0; lo < n; lo += reachGroup {
		hi := min(lo+reachGroup, n)
		reachAVX2(&marks[0], &src[lo], hi-lo, bound-1)
		for i, mark := range marks[:(hi-lo)/32] {
			for ; mark != 0; mark &= mark - 1 {
				at := lo + 32*i + bits.TrailingZeros32(mark)
				keys = append(keys, key(magnitudeBits(src[at]), at))
			}
		}
	}
	return portableReaching(keys, src, bound, n)
}
