package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A pixel is 16 channels, two vectors.
const pixelBytes = 64

// Byte offsets in cpu.normNumbers.
const (
	normMean   = 0
	normFactor = 64
	normShift  = 128
	normOffset = 192
	normSlope  = 256
)

// pair loads the two vectors at an offset.
func pair(base Register, offset int) []VecVirtual {
	v := vectors(2)
	VMOVUPS(at(base, offset), v[0])
	VMOVUPS(at(base, offset+32), v[1])
	return v
}

func clearAll(v []VecVirtual) {
	for _, r := range v {
		VXORPS(r, r, r)
	}
}

// moments emits two passes over the same pixels: the mean, and the sums about
// it. Each sum is four chains (two in the second pass) to hide their latency.
func moments() {
	function("momentsAVX2", "func(out, x *float32, pixels int, inverse float32)",
		"fills in a cpu.planeMoments; inverse is 1/pixels.")
	out, x, n := Load(Param("out"), GP64()), Load(Param("x"), GP64()), Load(Param("pixels"), GP64())
	address, err := Param("inverse").Resolve()
	if err != nil {
		panic(err)
	}
	from, left := GP64(), GP64()
	MOVQ(x, from)
	MOVQ(n, left)
	sums := vectors(8)
	clearAll(sums)
	each("sum", left, 4, pixelBytes, []Register{from}, func(offset int) {
		chain := offset / pixelBytes * 2
		VADDPS(at(from, offset), sums[chain], sums[chain])
		VADDPS(at(from, offset+32), sums[chain+1], sums[chain+1])
	})
	inverse := YMM()
	VBROADCASTSS(address.Addr, inverse)
	mean := vectors(2)
	for i := range 2 {
		VADDPS(sums[i+2], sums[i], sums[i])
		VADDPS(sums[i+6], sums[i+4], sums[i+4])
		VADDPS(sums[i+4], sums[i], sums[i])
		VMULPS(inverse, sums[i], mean[i])
		VMOVUPS(mean[i], at(out, 32*i))
	}
	first, second := vectors(4), vectors(4)
	clearAll(first)
	clearAll(second)
	each("about", n, 2, pixelBytes, []Register{x}, func(offset int) {
		for i := range 2 {
			chain := offset/pixelBytes*2 + i
			d := YMM()
			VMOVUPS(at(x, offset+32*i), d)
			VSUBPS(mean[i], d, d)
			VADDPS(d, first[chain], first[chain])
			VFMADD231PS(d, d, second[chain])
		}
	})
	for i := range 2 {
		VADDPS(first[i+2], first[i], first[i])
		VADDPS(second[i+2], second[i], second[i])
		VMOVUPS(first[i], at(out, 64+32*i))
		VMOVUPS(second[i], at(out, 128+32*i))
	}
	end()
}

// variants emits a loop for every combination of conditions: a pointer that is
// nil or not, or a number that is 0 or not.
func variants(conditions []Register, emit func(name string, on []bool)) {
	var descend func(name string, on []bool)
	descend = func(name string, on []bool) {
		if len(on) == len(conditions) {
			emit(name, on)
			end()
			return
		}
		c := conditions[len(on)]
		TESTQ(c, c)
		JZ(LabelRef(name + "0"))
		descend(name+"1", append(on[:len(on):len(on)], true))
		Label(name + "0")
		descend(name+"0", append(on[:len(on):len(on)], false))
	}
	descend("v", nil)
}

func normForward() {
	function("normForwardAVX2", "func(y, x, residual, numbers *float32, pixels, relu int)",
		"normalises pixels of 16 channels; residual may be nil; numbers is a cpu.normNumbers.")
	p := pointers("y", "x", "residual", "numbers")
	n, clamp := Load(Param("pixels"), GP64()), Load(Param("relu"), GP64())
	mean, factor, shift := pair(p[3], normMean), pair(p[3], normFactor), pair(p[3], normShift)
	z := zero()
	variants([]Register{p[2], clamp}, func(name string, on []bool) {
		moving := p[:2]
		if on[0] {
			moving = p[:3]
		}
		each(name, n, 2, pixelBytes, moving, func(offset int) {
			for i := range 2 {
				v := YMM()
				VMOVUPS(at(p[1], offset+32*i), v)
				VSUBPS(mean[i], v, v)
				VMULPS(factor[i], v, v)
				VADDPS(shift[i], v, v)
				if on[0] {
					VADDPS(at(p[2], offset+32*i), v, v)
				}
				if on[1] {
					VMAXPS(v, z, v)
				}
				VMOVUPS(v, at(p[0], offset+32*i))
			}
		})
	})
}

func normBackwardSums() {
	function("normBackwardSumsAVX2", "func(out, dy, x, y, numbers *float32, pixels int)",
		"fills in a cpu.planeSums; y may be nil; numbers is a cpu.normNumbers.")
	p := pointers("out", "dy", "x", "y", "numbers")
	n := Load(Param("pixels"), GP64())
	mean := pair(p[4], normMean)
	z := zero()
	variants([]Register{p[3]}, func(name string, on []bool) {
		gradient, product := vectors(4), vectors(4)
		clearAll(gradient)
		clearAll(product)
		moving := p[1:3]
		if on[0] {
			moving = p[1:4]
		}
		each(name, n, 2, pixelBytes, moving, func(offset int) {
			for i := range 2 {
				chain := offset/pixelBytes*2 + i
				g, d := YMM(), YMM()
				VMOVUPS(at(p[1], offset+32*i), g)
				if on[0] {
					mask(g, at(p[3], offset+32*i), z)
				}
				VMOVUPS(at(p[2], offset+32*i), d)
				VSUBPS(mean[i], d, d)
				VADDPS(g, gradient[chain], gradient[chain])
				VFMADD231PS(g, d, product[chain])
			}
		})
		for i := range 2 {
			VADDPS(gradient[i+2], gradient[i], gradient[i])
			VADDPS(product[i+2], product[i], product[i])
			VMOVUPS(gradient[i], at(p[0], 32*i))
			VMOVUPS(product[i], at(p[0], 64+32*i))
		}
	})
}

func normBackwardOutputs() {
	function("normBackwardOutputsAVX2", "func(dx, dresidual, dy, x, y, numbers *float32, pixels, accumulate int)",
		"computes the gradient of the input; y and dresidual may be nil; numbers is a cpu.normNumbers.")
	p := pointers("dx", "dresidual", "dy", "x", "y", "numbers")
	n, add := Load(Param("pixels"), GP64()), Load(Param("accumulate"), GP64())
	mean, factor := pair(p[5], normMean), pair(p[5], normFactor)
	offsets, slope := pair(p[5], normOffset), pair(p[5], normSlope)
	z := zero()
	variants([]Register{p[1], p[4], add}, func(name string, on []bool) {
		moving := []Register{p[0], p[2], p[3]}
		if on[0] {
			moving = append(moving, p[1])
		}
		if on[1] {
			moving = append(moving, p[4])
		}
		each(name, n, 1, pixelBytes, moving, func(offset int) {
			for i := range 2 {
				g, d := YMM(), YMM()
				VMOVUPS(at(p[2], offset+32*i), g)
				if on[1] {
					mask(g, at(p[4], offset+32*i), z)
				}
				if on[0] {
					VMOVUPS(g, at(p[1], offset+32*i))
				}
				VMOVUPS(at(p[3], offset+32*i), d)
				VSUBPS(mean[i], d, d)
				VMULPS(slope[i], d, d)
				VSUBPS(offsets[i], g, g)
				VSUBPS(d, g, g)
				VMULPS(factor[i], g, g)
				if on[2] {
					VADDPS(at(p[0], offset+32*i), g, g)
				}
				VMOVUPS(g, at(p[0], offset+32*i))
			}
		})
	})
}
