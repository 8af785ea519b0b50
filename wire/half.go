package wire

import (
	"encoding/binary"
	"math"
)

// Half is the format of 16-bit floats: IEEE 754 binary16, or the upper half of a
// float32 (bfloat16). Values are rounded to nearest, ties to even; what is too
// large for binary16 becomes infinite, so a receiver sees the overflow. The seed
// is not used.
type Half struct {
	bfloat  bool
	kernels kernels
}

// NewHalf returns the format of binary16, or of bfloat16.
func NewHalf(bfloat bool) *Half { return &Half{bfloat, chosenKernels()} }

// Name implements Format.
func (h *Half) Name() string {
	if h.bfloat {
		return "bf16"
	}
	return "f16"
}

// EncodedLen implements Format: 2 bytes a value.
func (h *Half) EncodedLen(n int) int { return 2 * n }

// Encode implements Format.
func (h *Half) Encode(dst []byte, src []float32, _ uint64) {
	dst = dst[:2*len(src)]
	n := h.kernels.narrow(h.bfloat, dst, src)
	for i := n; i < len(src); i++ {
		bits := narrowF16(src[i])
		if h.bfloat {
			bits = narrowBF16(src[i])
		}
		binary.LittleEndian.PutUint16(dst[2*i:], bits)
	}
}

// EncodeKeeping implements Format.
func (h *Half) EncodeKeeping(dst []byte, x []float32, seed uint64) {
	h.Encode(dst, x, seed)
	for i, v := range x {
		x[i] = lost(v, h.value(dst, i))
	}
}

func (h *Half) value(src []byte, i int) float32 {
	bits := binary.LittleEndian.Uint16(src[2*i:])
	if h.bfloat {
		return math.Float32frombits(uint32(bits) << 16)
	}
	return widenF16(bits)
}

// Decode implements Format.
func (h *Half) Decode(dst []float32, src []byte) {
	for i := h.kernels.widen(h.bfloat, dst, src[:2*len(dst)], false); i < len(dst); i++ {
		dst[i] = h.value(src, i)
	}
}

// DecodeAdd implements Format.
func (h *Half) DecodeAdd(dst []float32, src []byte) {
	for i := h.kernels.widen(h.bfloat, dst, src[:2*len(dst)], true); i < len(dst); i++ {
		dst[i] += h.value(src, i)
	}
}

// lost is what an encoding of v as decoded lacks; nothing where a difference
// would not be finite, as it would then be sent for ever.
func lost(v, decoded float32) float32 {
	d := v - decoded
	if d-d != 0 {
		return 0
	}
	return d
}

func widenF16(h uint16) float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.Float32frombits(sign | 0x7fc00000 | fraction<<13)
	case exponent == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent == 0: // zero and subnormals: fraction * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

func narrowF16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	case bits >= 0x477ff000: // 65520, half way beyond the largest
		return sign | 0x7c00
	case bits < 0x38800000: // below 2^-14: the sum with 0.5 rounds to 2^-24
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	bits += 0xfff + bits>>13&1
	return sign | uint16((bits-0x38000000)>>13)
}

func narrowBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
