package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// fold sets dst to the reduction of parts from left to right: 16-bit floats in
// float32, rounded once, others in their own type. A mean divides at the end.
func fold(r collective.Reducer, op collective.Op, dst device.Buf, parts []device.Buf) {
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		foldHalves(op, dst, parts)
		return
	}
	copy(dst.Bytes(), parts[0].Bytes())
	for _, part := range parts[1:] {
		if r != nil {
			r.Reduce(kernel(op), dst, part)
			continue
		}
		switch dst.Type {
		case device.F32:
			reduce(op, dst.F32(), part.F32())
		case device.F64:
			reduce(op, dst.F64(), part.F64())
		case device.I32:
			reduce(op, dst.I32(), part.I32())
		case device.I64:
			reduce(op, dst.I64(), part.I64())
		case device.I8:
			reduce(op, dst.I8(), part.I8())
		case device.U8:
			reduce(op, dst.Bytes(), part.Bytes())
		}
	}
	if op == collective.Mean {
		divide(dst, len(parts))
	}
}

func kernel(op collective.Op) device.ReduceOp {
	switch op {
	case collective.Prod:
		return device.Prod
	case collective.Max:
		return device.Max
	case collective.Min:
		return device.Min
	}
	return device.Sum
}

type number interface {
	float32 | float64 | int32 | int64 | int8 | uint8
}

func reduce[T number](op collective.Op, dst, src []T) {
	for i, x := range src[:len(dst)] {
		dst[i] = combine(op, dst[i], x)
	}
}

func combine[T number](op collective.Op, x, y T) T {
	switch op {
	case collective.Prod:
		return x * y
	case collective.Max:
		return max(x, y)
	case collective.Min:
		return min(x, y)
	}
	return x + y
}

// converters returns how a 16-bit type becomes float32 and back.
func converters(t device.Type) (widen func(uint16) float32, narrow func(float32) uint16) {
	if t == device.F16 {
		return device.F16ToF32, device.F32ToF16
	}
	return device.BF16ToF32, device.F32ToBF16
}

func foldHalves(op collective.Op, dst device.Buf, parts []device.Buf) {
	widen, narrow := converters(dst.Type)
	d := dst.U16()
	var sums [512]float32
	for lo := 0; lo < len(d); lo += len(sums) {
		block := sums[:min(len(sums), len(d)-lo)]
		for i, h := range parts[0].U16()[lo : lo+len(block)] {
			block[i] = widen(h)
		}
		for _, part := range parts[1:] {
			for i, h := range part.U16()[lo : lo+len(block)] {
				block[i] = combine(op, block[i], widen(h))
			}
		}
		for i, x := range block {
			if op == collective.Mean {
				x /= float32(len(parts))
			}
			d[lo+i] = narrow(x)
		}
	}
}

// scale sets dst to src / n, of 16-bit floats: before a sum in that type, so that
// it stays in range.
func scale(dst, src device.Buf, n int) {
	widen, narrow := converters(dst.Type)
	d := dst.U16()
	for i, h := range src.U16() {
		d[i] = narrow(widen(h) / float32(n))
	}
}

// divide sets every element to itself / n; integers round towards zero.
func divide(b device.Buf, n int) {
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
