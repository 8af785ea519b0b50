package collective

import (
	"github.com/gradfusion/gradfusion/device"
)

// Reducer is the arithmetic that reductions need. device.Kernels is one; a
// Group without one uses plain Go loops. Its methods must be safe for
// concurrent use.
type Reducer interface {
	// Reduce sets dst = dst op src, for every type; 16-bit floats are computed
	// in float32 and rounded once.
	Reduce(op device.ReduceOp, dst, src device.Buf)
	// Fold sets dst to the sum of parts, added from left to right in float32
	// (float64 for F64, exact for integers) and rounded once. dst overlaps no
	// part.
	Fold(dst device.Buf, parts []device.Buf)
}

var _ Reducer = device.Kernels(nil)

// plainReducer is the Reducer of plain loops.
type plainReducer struct{}

func (plainReducer) Reduce(op device.ReduceOp, dst, src device.Buf) {
	switch dst.Type {
	case device.F32:
		reduceFloats(op, dst.F32(), src.F32())
	case device.F64:
		reduceFloats(op, dst.F64(), src.F64())
	case device.I32:
		reduceIntegers(op, dst.I32(), src.I32())
	case device.I64:
		reduceIntegers(op, dst.I64(), src.I64())
	case device.I8:
		reduceIntegers(op, dst.I8(), src.I8())
	case device.U8:
		reduceIntegers(op, dst.Bytes(), src.Bytes())
	case device.F16, device.BF16:
		reduceHalves(op, dst, src)
	}
}

func (plainReducer) Fold(dst device.Buf, parts []device.Buf) {
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		foldHalves(Sum, dst, parts)
		return
	}
	copy(dst.Bytes(), parts[0].Bytes())
	for _, part := range parts[1:] {
		plainReducer{}.Reduce(device.Sum, dst, part)
	}
}

type integer interface{ int8 | uint8 | int32 | int64 }

func reduceIntegers[T integer](op device.ReduceOp, dst, src []T) {
	src = src[:len(dst)]
	switch op {
	case device.Sum:
		for i := range dst {
			dst[i] += src[i]
		}
	case device.Prod:
		for i := range dst {
			dst[i] *= src[i]
		}
	case device.Max:
		for i := range dst {
			dst[i] = max(dst[i], src[i])
		}
	case device.Min:
		for i := range dst {
			dst[i] = min(dst[i], src[i])
		}
	}
}

func reduceFloats[T float32 | float64](op device.ReduceOp, dst, src []T) {
	src = src[:len(dst)]
	switch op {
	case device.Sum:
		for i := range dst {
			dst[i] += src[i]
		}
	case device.Prod:
		for i := range dst {
			dst[i] *= src[i]
		}
	case device.Max:
		for i := range dst {
			dst[i] = max(dst[i], src[i])
		}
	case device.Min:
		for i := range dst {
			dst[i] = min(dst[i], src[i])
		}
	}
}

func reduceHalves(op device.ReduceOp, dst, src device.Buf) {
	d, s := dst.U16(), src.U16()
	for i := range d {
		x, y := widen(dst.Type, d[i]), widen(dst.Type, s[i])
		d[i] = narrow(dst.Type, combine(op, x, y))
	}
}

func combine(op device.ReduceOp, x, y float32) float32 {
	switch op {
	case device.Prod:
		return x * y
	case device.Max:
		return max(x, y)
	case device.Min:
		return min(x, y)
	}
	return x + y
}

// foldHalves folds 16-bit values in float32, left to right; Mean divides before
// the one rounding.
func foldHalves(op Op, dst device.Buf, parts []device.Buf) {
	d := dst.U16()
	var sums [512]float32
	for lo := 0; lo < len(d); lo += len(sums) {
		block := sums[:min(len(sums), len(d)-lo)]
		for i, h := range parts[0].U16()[lo : lo+len(block)] {
			block[i] = widen(dst.Type, h)
		}
		for _, part := range parts[1:] {
			for i, h := range part.U16()[lo : lo+len(block)] {
				block[i] = combine(op.kernel(), block[i], widen(dst.Type, h))
			}
		}
		for i, x := range block {
			if op == Mean {
				x /= float32(len(parts))
			}
			d[lo+i] = narrow(dst.Type, x)
		}
	}
}

// FoldParts sets dst to the reduction of parts from left to right, as a Group does
// it, by r or, where that is nil, by plain loops: 16-bit floats in float32, rounded
// once, others in their own type. A Mean divides at the end. It is for Comms that
// are no Group.
func FoldParts(r Reducer, op Op, dst device.Buf, parts []device.Buf) {
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		foldHalves(op, dst, parts)
		return
	}
	if r == nil {
		r = plainReducer{}
	}
	copy(dst.Bytes(), parts[0].Bytes())
	for _, part := range parts[1:] {
		r.Reduce(op.kernel(), dst, part)
	}
	if op == Mean {
		Divide(dst, len(parts))
	}
}

// Divide sets every element to itself / n, which is the second half of Mean, of all
// types but 16-bit floats; integers round towards zero.
func Divide(b device.Buf, n int) {
	switch b.Type {
	case device.F32:
		divideAll(b.F32(), float32(n))
	case device.F64:
		divideAll(b.F64(), float64(n))
	case device.I32:
		divideAll(b.I32(), int32(n))
	case device.I64:
		divideAll(b.I64(), int64(n))
	case device.I8:
		for i, x := range b.I8() { // n may be above 127
			b.I8()[i] = int8(int(x) / n)
		}
	case device.U8:
		for i, x := range b.Bytes() {
			b.Bytes()[i] = byte(int(x) / n)
		}
	}
}

func divideAll[T float32 | float64 | int32 | int64](s []T, n T) {
	for i := range s {
		s[i] /= n
	}
}

// kernel is the operation that a Reducer knows; Mean's division comes later.
func (o Op) kernel() device.ReduceOp {
	switch o {
	case Prod:
		return device.Prod
	case Max:
		return device.Max
	case Min:
		return device.Min
	}
	return device.Sum
}
