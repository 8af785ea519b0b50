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

func (t *elementsTask) reducePart(s *scratch, lo, hi int) {
	dst, src := t.dst.Slice(lo, hi), t.a.Slice(lo, hi)
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		t.reduceHalves(s, dst, src)
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

// reduceHalves reduces 16-bit types through float32, a chunk at a time.
func (t *elementsTask) reduceHalves(s *scratch, dst, src device.Buf) {
	half := t.set.half(dst.Type)
	for lo := 0; lo < dst.Len; lo += foldChunk {
		hi := min(lo+foldChunk, dst.Len)
		wide := s.plane.floats(2 * foldChunk)
		x, y := wide[:hi-lo], wide[foldChunk:][:hi-lo]
		half.widen(x, dst.U16()[lo:hi])
		if t.reduce == device.Sum {
			half.add(x, src.U16()[lo:hi])
		} else {
			half.widen(y, src.U16()[lo:hi])
			reduceFloats(t.set, t.reduce, x, y)
		}
		half.narrow(dst.U16()[lo:hi], x)
	}
}

func (t *elementsTask) foldPart(s *scratch, lo, hi int) {
	for ; lo < hi; lo += foldChunk {
		end := min(lo+foldChunk, hi)
		switch t.dst.Type {
		case device.F16, device.BF16:
			t.foldHalves(s.plane.floats(foldChunk)[:end-lo], lo, end)
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

func (t *elementsTask) foldHalves(sum []float32, lo, hi int) {
	half := t.set.half(t.dst.Type)
	half.widen(sum, t.parts[0].U16()[lo:hi])
	for _, p := range t.parts[1:] {
		half.add(sum, p.U16()[lo:hi])
	}
	half.narrow(t.dst.U16()[lo:hi], sum)
}
