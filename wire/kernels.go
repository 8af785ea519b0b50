package wire

import "math"

// Add adds src to dst, which is as long.
func Add(dst, src []float32) {
	src = src[:len(dst)]
	for i := chosenKernels().add(dst, src); i < len(dst); i++ {
		dst[i] += src[i]
	}
}

// portableReaching is what kernels.reaching does where there are no vectors.
func portableReaching(keys []uint64, src []float32, bound uint32, first int) []uint64 {
	for i, v := range src[first:] {
		if bits := magnitudeBits(v); bits >= bound {
			keys = append(keys, key(bits, first+i))
		}
	}
	return keys
}

// key orders candidates by magnitude, the first of equals before the others.
func key(magnitude uint32, place int) uint64 {
	return uint64(magnitude)<<32 | uint64(^uint16(place))
}

// magnitudeBits order floats by their magnitudes, NaN above all.
func magnitudeBits(v float32) uint32 { return math.Float32bits(v) & 0x7fffffff }
