package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// functions emits what approximates functions and folds rows.
func functions(v *lanes) {
	v.exponentials()
	v.largest()
	v.dot()
	v.softmaxBackward()
	v.shifted()
	v.dropout()
	v.addRows()
	v.elementwise("tanh", "sets y = tanh(x)", func(x VecVirtual) VecVirtual { return v.tanh(x) })
	v.elementwise("sigmoid", "sets y = 1/(1+exp(-x))", func(x VecVirtual) VecVirtual {
		s, _ := v.sigmoid(x)
		return s
	})
	for _, g := range gates(v) {
		v.gated(g)
		v.gradient(g.name+"Backward", "x", g.slope(v))
	}
	v.gradient("tanhBackward", "y", func(y VecVirtual) VecVirtual {
		d := v.register()
		VMULPS(y, y, y)
		v.fill(d, v.float(1))
		VSUBPS(y, d, d)
		return d
	})
	v.gradient("sigmoidBackward", "y", func(y VecVirtual) VecVirtual {
		d := v.register()
		v.fill(d, v.float(1))
		VSUBPS(y, d, d)
		VMULPS(y, d, d)
		return d
	})
	v.layerNorm()
}

// exp uses x up and returns its exponential: 2^n times a polynomial of the rest,
// which is within ln(2)/2 of 0. Overflow gives infinity, underflow subnormal
// numbers and 0, NaN itself.
func (v *lanes) exp(x VecVirtual) VecVirtual {
	v.clamp(x, -104, 89)
	n, f := v.register(), v.register()
	v.with(VMULPS, VMULPS_BCST, v.float(math.Log2E), x, f)
	VCVTPS2DQ(f, n)
	VCVTDQ2PS(n, f)
	// The upper part of ln 2 has 15 bits, so that its product with n is exact.
	high := float64(math.Float32frombits(math.Float32bits(math.Ln2) &^ 0x1ff))
	v.with(VFNMADD231PS, VFNMADD231PS_BCST, v.float(high), f, x)
	v.with(VFNMADD231PS, VFNMADD231PS_BCST, v.float(math.Ln2-high), f, x)
	p := v.polynomial(x, expTail...)
	square := v.register()
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	v.with(VADDPS, VADDPS_BCST, v.float(1), p, p)
	if v.wide {
		VSCALEFPS(f, p, p)
		return p
	}
	// Two factors: one has no room for 2^-149 or 2^128.
	half := v.register()
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	for _, e := range []VecVirtual{half, n} {
		VPADDD(v.bits(127), e, e)
		VPSLLD(U8(23), e, e)
		VMULPS(e, p, p)
	}
	return p
}

// exponentials emits y = exp(x*scale - offset) and the sum of y.
func (v *lanes) exponentials() {
	v.function("exponentials", "func(y, x *float32, scale, offset float32, n int) float32",
		"sets y = exp(x*scale - offset) and returns the sum of y")
	p := pointers("y", "x")
	scale, less := v.parameter("scale"), v.parameter("offset")
	v.hold(math.Log2E, 89, -104)
	sums := []VecVirtual{v.zero(), v.zero()}
	v.each(2, p, func(offset int) {
		x := v.load(at(p[1], offset))
		VFMSUB213PS(less, scale, x)
		y := v.exp(x)
		v.store(y, at(p[0], offset))
		v.only(y)
		sum := sums[offset/v.bytes%2]
		VADDPS(y, sum, sum)
	})
	VADDPS(sums[1], sums[0], sums[0])
	v.results(v.fold(sums[0], VADDPS))
}

func (v *lanes) largest() {
	v.function("largest", "func(x *float32, n int) float32", "returns the maximum; NaN are passed over or returned")
	p := pointers("x")
	most := v.registers(2)
	for _, m := range most {
		VBROADCASTSS(at(p[0], 0), m)
	}
	v.each(2, p, func(offset int) {
		m := most[offset/v.bytes%2]
		x := v.load(at(p[0], offset))
		v.or(x, m)
		VMAXPS(x, m, m)
	})
	VMAXPS(most[1], most[0], most[0])
	v.results(v.fold(most[0], VMAXPS))
}

func (v *lanes) dot() {
	v.function("dot", "func(a, b *float32, n int) float32", "returns the sum of a*b")
	p := pointers("a", "b")
	sums := []VecVirtual{v.zero(), v.zero()}
	v.each(2, p, func(offset int) {
		a := v.load(at(p[0], offset))
		VFMADD231PS(v.operand(at(p[1], offset)), a, sums[offset/v.bytes%2])
	})
	VADDPS(sums[1], sums[0], sums[0])
	v.results(v.fold(sums[0], VADDPS))
}

func (v *lanes) softmaxBackward() {
	v.function("softmaxBackward", "func(ds, p, dp *float32, mean, scale float32, n int)", "sets ds = p * (dp - mean) * scale")
	p := pointers("ds", "p", "dp")
	mean, scale := v.parameter("mean"), v.parameter("scale")
	v.each(2, p, func(offset int) {
		x := v.load(at(p[2], offset))
		VSUBPS(mean, x, x)
		VMULPS(v.operand(at(p[1], offset)), x, x)
		VMULPS(scale, x, x)
		v.store(x, at(p[0], offset))
	})
	end()
}

func (v *lanes) shifted() {
	v.function("shifted", "func(y, x *float32, less, scale float32, n int)", "sets y = (x - less) * scale")
	p := pointers("y", "x")
	less, scale := v.parameter("less"), v.parameter("scale")
	v.each(4, p, func(offset int) {
		x := v.load(at(p[1], offset))
		VSUBPS(less, x, x)
		VMULPS(scale, x, x)
		v.store(x, at(p[0], offset))
	})
	end()
}

// elementwise emits y = f(x).
func (v *lanes) elementwise(name, doc string, f func(x VecVirtual) VecVirtual) {
	v.function(name, "func(y, x *float32, n int)", doc)
	p := pointers("y", "x")
	v.each(2, p, func(offset int) {
		v.store(f(v.load(at(p[1], offset))), at(p[0], offset))
	})
	end()
}

// tanh is x times a quotient of polynomials of x^2.
func (v *lanes) tanh(x VecVirtual) VecVirtual {
	v.clamp(x, -tanhLimit, tanhLimit)
	y := v.quotient(x, tanhAbove, tanhBelow)
	VMULPS(x, y, y)
	v.clamp(y, -1, 1) // roundings may add up
	return y
}

// quotient returns above(x^2) / below(x^2).
func (v *lanes) quotient(x VecVirtual, above, below []float64) VecVirtual {
	square := v.register()
	VMULPS(x, x, square)
	y, d := v.polynomial(square, above...), v.polynomial(square, below...)
	if !v.wide {
		VDIVPS(d, y, y)
		return y
	}
	// A division of 16 floats takes as long as all the rest: a reciprocal to 14
	// bits, and one step of Newton's method for the quotient. d is near no limit.
	r, q := v.register(), v.register()
	VRCP14PS(d, r)
	VMULPS(r, y, q)
	VFNMADD213PS(y, q, d)
	VFMADD213PS(q, r, d)
	return d
}
