package hccl

import "github.com/gradfusion/gradfusion/device"

// converters returns how a 16-bit type becomes float32 and back.
func converters(t device.Type) (widen func(uint16) float32, narrow func(float32) uint16) {
	if t == device.F16 {
		return device.F16ToF32, device.F32ToF16
	}
	return device.BF16ToF32, device.F32ToBF16
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
