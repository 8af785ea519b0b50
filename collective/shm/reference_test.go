//go:build linux && (amd64 || arm64)

package shm

import (
	"math"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// foldReference is the dumb twin of all reductions: element by element, in rank
// order, 16-bit floats in float32 and rounded once (but for maximum, which does
// not round).
func foldReference(op collective.Op, dst device.Buf, parts []device.Buf) {
	for i := range dst.Len {
		switch dst.Type {
		case device.F32:
			dst.F32()[i] = fold(op, len(parts), func(r int) float32 { return parts[r].F32()[i] })
		case device.F64:
			dst.F64()[i] = fold(op, len(parts), func(r int) float64 { return parts[r].F64()[i] })
		case device.I32:
			dst.I32()[i] = fold(op, len(parts), func(r int) int32 { return parts[r].I32()[i] })
		case device.I64:
			dst.I64()[i] = fold(op, len(parts), func(r int) int64 { return parts[r].I64()[i] })
		case device.I8:
			dst.I8()[i] = int8(divided(op, len(parts), int(fold(sumFor(op), len(parts), func(r int) int8 { return parts[r].I8()[i] }))))
		case device.U8:
			dst.Bytes()[i] = byte(divided(op, len(parts), int(fold(sumFor(op), len(parts), func(r int) byte { return parts[r].Bytes()[i] }))))
		default:
			dst.U16()[i] = narrow(dst.Type, fold(op, len(parts), func(r int) float32 { return widen(dst.Type, parts[r].U16()[i]) }))
		}
	}
}

func sumFor(op collective.Op) collective.Op {
	if op == collective.Mean {
		return collective.Sum
	}
	return op
}

func divided(op collective.Op, n, x int) int {
	if op == collective.Mean {
		return x / n
	}
	return x
}

func fold[T int8 | byte | int32 | int64 | float32 | float64](op collective.Op, n int, value func(r int) T) T {
	x := value(0)
	for r := 1; r < n; r++ {
		switch op {
		case collective.Prod:
			x *= value(r)
		case collective.Max:
			x = max(x, value(r))
		case collective.Min:
			x = min(x, value(r))
		default:
			x += value(r)
		}
	}
	if op == collective.Mean {
		x /= T(n)
	}
	return x
}

func widen(t device.Type, h uint16) float32 {
	if t == device.BF16 {
		return math.Float32frombits(uint32(h) << 16)
	}
	sign := float32(1)
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&0x3ff)
	switch exponent {
	case 0:
		return sign * float32(math.Ldexp(fraction, -24))
	case 31:
		return sign * float32(math.Inf(1))
	}
	return sign * float32(math.Ldexp(1024+fraction, exponent-25))
}

// narrow rounds to the nearest 16-bit float, ties to even, by trying both
// neighbours.
func narrow(t device.Type, x float32) uint16 {
	if t == device.BF16 {
		bits := math.Float32bits(x)
		low := bits & 0xffff
		bits >>= 16
		if low > 0x8000 || low == 0x8000 && bits&1 == 1 {
			bits++
		}
		return uint16(bits)
	}
	sign := uint16(0)
	if math.Signbit(float64(x)) {
		sign = 0x8000
	}
	size := math.Abs(float64(x))
	if size >= 65520 {
		return sign | 0x7c00
	}
	lo, hi := uint16(0), uint16(0x7bff)
	for lo < hi { // the largest that is not above
		mid := (lo + hi + 1) / 2
		if float64(widen(t, mid)) <= size {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	below, above := size-float64(widen(t, lo)), float64(widen(t, lo+1))-size
	if lo == 0x7bff {
		above = 65536 - size
	}
	if above < below || above == below && lo&1 == 1 {
		lo++
	}
	return sign | lo
}
