package device

import "math"

// The 16-bit formats. F16 is IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction
// bits. BF16 is the upper half of a float32. All conversions to them round to
// nearest, ties to even; overflow gives infinity; a NaN stays a quiet NaN with
// its sign and the upper bits of its payload, as the F16C instructions have it.

// F16ToF32 is exact.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1f
	fraction := uint32(h & 0x3ff)
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.Float32frombits(sign | 0x7fc00000 | fraction<<13)
	case exponent == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent == 0:
		// A subnormal is fraction * 2^-24; float32 holds it as a normal number.
		v := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// F32ToF16 rounds to nearest even.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00 | uint16(magnitude>>13&0x3ff)
	case magnitude >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case magnitude < 0x38800000: // below 2^-14: subnormal or zero
		// Adding 0.5 puts the unit of the last place at 2^-24, the unit of
		// F16 subnormals, and the addition itself rounds to nearest even.
		sum := math.Float32frombits(magnitude) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	odd := magnitude >> 13 & 1
	magnitude += 0xfff + odd
	return sign | uint16(magnitude>>13-112<<10)
}

// BF16ToF32 is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to nearest even.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// F64ToF16 rounds once, from the float64's own bits.
func F64ToF16(d float64) uint16 { return F32ToF16(roundToOdd(d)) }

// F64ToBF16 rounds once, from the float64's own bits.
func F64ToBF16(d float64) uint16 { return F32ToBF16(roundToOdd(d)) }

// roundToOdd truncates d to float32 and sets the last bit when anything was
// lost. A second rounding to a format at least two bits narrower then gives what
// one rounding would have given (Boldo and Melquiond, 2008).
func roundToOdd(d float64) float32 {
	f := float32(d)
	wide := float64(f)
	if wide == d || d != d {
		return f
	}
	bits := math.Float32bits(f)
	if math.Abs(wide) > math.Abs(d) {
		bits-- // towards zero; from infinity to the largest finite number
	}
	return math.Float32frombits(bits | 1)
}
