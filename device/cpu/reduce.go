package cpu

import "github.com/gradfusion/gradfusion/device"

// foldChunk is how many elements of all parts are added before the next: the
// running sum stays in the first-level cache.
const foldChunk = 2048

type number interface {
	~float32 | ~float64 | ~int8 | ~uint8 | ~int32 | ~int64
}

func combine[T number](op device.ReduceOp, dst, src []T) {
	switch op {
	case device.Prod:
		for i, v := range src {
			dst[i] *= v
		}
	case device.Max:
		for i, v := range src {
			if !(dst[i] > v || dst[i] != dst[i]) {
				dst[i] = v
			}
		}
	case device.Min:
		for i, v := range src {
			if !(dst[i] < v || dst[i] != dst[i]) {
				dst[i] = v
			}
		}
	default:
		for i, v := range src {
			dst[i] += v
		}
	}
}

func (t *elementsTask) reducePart(lo, hi int) {
	dst, src := t.dst.Slice(lo, hi), t.a.Slice(lo, hi)
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		halves(t.set, t.reduce, dst, src)
		return
	}
	reduceWide(t.set, t.reduce, dst, src)
}

// reduceWide serves the types that are computed as they are.
func reduceWide(set *kernelSet, op device.ReduceOp, dst, src device.Buf) {
	switch dst.Type {
	case device.F32:
		reduceFloats(set, op, dst.F32(), src.F32())
	case device.F64:
		combine(op, dst.F64(), src.F64())
	case device.I32:
		combine(op, dst.I32(), src.I32())
	case device.I64:
		combine(op, dst.I64(), src.I64())
	case device.I8:
		combine(op, dst.I8(), src.I8())
	case device.U8:
		combine(op, dst.Bytes(), src.Bytes())
	}
}

func reduceFloats(set *kernelSet, op device.ReduceOp, dst, src []float32) {
	switch op {
	case device.Prod:
		set.mul(dst, dst, src)
	case device.Max:
		set.max(dst, dst, src)
	case device.Min:
		set.min(dst, dst, src)
	default:
		set.add(dst, dst, src)
	}
}

// halves reduces 16-bit types through float32, a few at a time.
func halves(set *kernelSet, op device.ReduceOp, dst, src device.Buf) {
	var x, y [256]float32
	for lo := 0; lo < dst.Len; lo += len(x) {
		n := min(len(x), dst.Len-lo)
		d := dst.Slice(lo, lo+n)
		widen(x[:n], d)
		widen(y[:n], src.Slice(lo, lo+n))
		switch op {
		case device.Sum:
			portableAdd(x[:n], x[:n], y[:n])
		case device.Prod:
			portableMul(x[:n], x[:n], y[:n])
		case device.Max:
			portableMax(x[:n], x[:n], y[:n])
		case device.Min:
			portableMin(x[:n], x[:n], y[:n])
		}
		narrow(d, x[:n])
	}
}

func (t *elementsTask) foldPart(s *scratch, lo, hi int) {
	for ; lo < hi; lo += foldChunk {
		end := min(lo+foldChunk, hi)
		switch t.dst.Type {
		case device.F16, device.BF16:
			sum := s.plane.floats(2 * foldChunk)
			t.foldHalves(sum[:end-lo], sum[foldChunk:][:end-lo], lo, end)
		case device.F32:
			t.foldFloats(lo, end)
		default:
			dst := t.dst.Slice(lo, end)
			copy(dst.Bytes(), t.parts[0].Slice(lo, end).Bytes())
			for _, p := range t.parts[1:] {
				reduceWide(t.set, device.Sum, dst, p.Slice(lo, end))
			}
		}
	}
}

func (t *elementsTask) foldFloats(lo, hi int) {
	dst, first := t.dst.F32()[lo:hi], t.parts[0].F32()[lo:hi]
	if len(t.parts) == 1 {
		copy(dst, first)
		return
	}
	t.set.add(dst, first, t.parts[1].F32()[lo:hi])
	for _, p := range t.parts[2:] {
		t.set.add(dst, dst, p.F32()[lo:hi])
	}
}

func (t *elementsTask) foldHalves(sum, part []float32, lo, hi int) {
	widen(sum, t.parts[0].Slice(lo, hi))
	for _, p := range t.parts[1:] {
		widen(part, p.Slice(lo, hi))
		t.set.add(sum, sum, part)
	}
	narrow(t.dst.Slice(lo, hi), sum)
}
