package collective

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// widen converts a 16-bit float to float32, which holds it exactly.
func widen(t device.Type, h uint16) float32 {
	if t == device.BF16 {
		return math.Float32frombits(uint32(h) << 16)
	}
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and subnormals: fraction * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// narrow rounds a float32 to the nearest 16-bit float, ties to even. NaN stays
// NaN, and what is too large becomes infinite.
func narrow(t device.Type, x float32) uint16 {
	bits := math.Float32bits(x)
	if t == device.BF16 {
		if x != x {
			return uint16(bits>>16) | 0x40
		}
		return uint16((bits + 0x7fff + bits>>16&1) >> 16)
	}
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return sign | 0x7e00
	case bits >= 0x477ff000: // 65520, half way beyond the largest
		return sign | 0x7c00
	case bits < 0x38800000: // below 2^-14: the sum with 0.5 rounds to 2^-24
		sum := math.Float32bits(math.Float32frombits(bits) + 0.5)
		return sign | uint16(sum-0x3f000000)
	}
	bits += 0xfff + bits>>13&1
	return sign | uint16((bits-0x38000000)>>13)
}
