package cpu

import "github.com/gradfusion/gradfusion/device"

// halfKernels convert one 16-bit type.
type halfKernels struct {
	widen  func(dst []float32, src []uint16)
	add    func(dst []float32, src []uint16) // widened, to what dst holds
	narrow func(dst []uint16, src []float32)
}

func (set *kernelSet) half(t device.Type) *halfKernels {
	if t == device.BF16 {
		return &set.bf16
	}
	return &set.f16
}

func portableHalves(widen func(uint16) float32, narrow func(float32) uint16) halfKernels {
	return halfKernels{
		widen: func(dst []float32, src []uint16) {
			for i, h := range src {
				dst[i] = widen(h)
			}
		},
		add: func(dst []float32, src []uint16) {
			for i, h := range src {
				dst[i] += widen(h)
			}
		},
		narrow: func(dst []uint16, src []float32) {
			for i, v := range src {
				dst[i] = narrow(v)
			}
		},
	}
}

// castChunk is how many elements go through float32 at a time where that is
// neither source nor destination.
const castChunk = 2048

// cast converts between floating-point types of equal length.
func (t *elementsTask) cast(s *scratch, lo, hi int) {
	dst, src := t.dst.Slice(lo, hi), t.a.Slice(lo, hi)
	switch {
	case dst.Type == src.Type:
		copy(dst.Bytes(), src.Bytes())
	case dst.Type == device.F32 && src.Type == device.F64:
		for i, v := range src.F64() {
			dst.F32()[i] = float32(v)
		}
	case dst.Type == device.F64 && src.Type == device.F32:
		for i, v := range src.F32() {
			dst.F64()[i] = float64(v)
		}
	case dst.Type == device.F32:
		t.set.half(src.Type).widen(dst.F32(), src.U16())
	case src.Type == device.F32:
		t.set.half(dst.Type).narrow(dst.U16(), src.F32())
	case src.Type == device.F64:
		narrowF64(dst, src.F64())
	default:
		t.castThroughF32(s, dst, src)
	}
}

func (t *elementsTask) castThroughF32(s *scratch, dst, src device.Buf) {
	for lo := 0; lo < src.Len; lo += castChunk {
		hi := min(lo+castChunk, src.Len)
		wide := s.plane.floats(castChunk)[:hi-lo]
		t.set.half(src.Type).widen(wide, src.U16()[lo:hi])
		if dst.Type != device.F64 {
			t.set.half(dst.Type).narrow(dst.U16()[lo:hi], wide)
			continue
		}
		for i, v := range wide {
			dst.F64()[lo+i] = float64(v)
		}
	}
}

// narrowF64 rounds once, which float32 in between would not.
func narrowF64(dst device.Buf, src []float64) {
	out := dst.U16()
	for i, v := range src {
		if dst.Type == device.BF16 {
			out[i] = device.F64ToBF16(v)
		} else {
			out[i] = device.F64ToF16(v)
		}
	}
}
