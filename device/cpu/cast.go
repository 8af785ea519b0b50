package cpu

import "github.com/gradfusion/gradfusion/device"

// widen converts a 16-bit buffer to float32.
func widen(dst []float32, src device.Buf) {
	if src.Type == device.BF16 {
		for i, h := range src.U16() {
			dst[i] = device.BF16ToF32(h)
		}
		return
	}
	for i, h := range src.U16() {
		dst[i] = device.F16ToF32(h)
	}
}

// narrow converts float32 to a 16-bit buffer.
func narrow(dst device.Buf, src []float32) {
	out := dst.U16()
	if dst.Type == device.BF16 {
		for i, v := range src {
			out[i] = device.F32ToBF16(v)
		}
		return
	}
	for i, v := range src {
		out[i] = device.F32ToF16(v)
	}
}

// cast converts between floating-point types of equal length.
func cast(dst, src device.Buf) {
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
		widen(dst.F32(), src)
	case src.Type == device.F32:
		narrow(dst, src.F32())
	case dst.Type == device.F64:
		castThroughF32(dst.F64(), src)
	case src.Type == device.F64:
		narrowF64(dst, src.F64())
	default:
		var wide [256]float32
		for lo := 0; lo < dst.Len; lo += len(wide) {
			n := min(len(wide), dst.Len-lo)
			widen(wide[:n], src.Slice(lo, lo+n))
			narrow(dst.Slice(lo, lo+n), wide[:n])
		}
	}
}

func castThroughF32(dst []float64, src device.Buf) {
	var wide [256]float32
	for lo := 0; lo < src.Len; lo += len(wide) {
		n := min(len(wide), src.Len-lo)
		widen(wide[:n], src.Slice(lo, lo+n))
		for i, v := range wide[:n] {
			dst[lo+i] = float64(v)
		}
	}
}

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
