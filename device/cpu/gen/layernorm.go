package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// layerNorm emits passes over one row of a matrix.
func (v *lanes) layerNorm() {
	v.sum()
	v.about()
	v.normalise()
	v.layerNormSums()
	v.layerNormOutputs("layerNormOutputs", false)
	v.layerNormOutputs("layerNormOutputsAdd", true)
}

func (v *lanes) sum() {
	v.function("sum", "func(x *float32, n int) float32", "returns the sum of x")
	p := pointers("x")
	sums := []VecVirtual{v.zero(), v.zero(), v.zero(), v.zero()}
	v.each(4, p, func(offset int) {
		s := sums[offset/v.bytes%4]
		VADDPS(v.operand(at(p[0], offset)), s, s)
	})
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	v.results(v.fold(sums[0], VADDPS))
}

// about emits the sums of the deviation from a first guess of the mean and of
// its square.
func (v *lanes) about() {
	v.function("about", "func(x *float32, guess float32, n int) (first, second float32)", "returns the sums of x-guess and of its square")
	p, guess := pointers("x"), v.parameter("guess")
	first, second := []VecVirtual{v.zero(), v.zero()}, []VecVirtual{v.zero(), v.zero()}
	v.each(2, p, func(offset int) {
		chain := offset / v.bytes % 2
		d := v.load(at(p[0], offset))
		VSUBPS(guess, d, d)
		v.only(d)
		VADDPS(d, first[chain], first[chain])
		VFMADD231PS(d, d, second[chain])
	})
	VADDPS(first[1], first[0], first[0])
	VADDPS(second[1], second[0], second[0])
	v.results(v.fold(first[0], VADDPS), v.fold(second[0], VADDPS))
}

// normalise emits y = (x - guess - rest) * invstd * scale + shift.
func (v *lanes) normalise() {
	v.function("normalise", "func(y, x, scale, shift *float32, guess, rest, invstd float32, n int)",
		"sets y = (x - guess - rest) * invstd * scale + shift")
	p := pointers("y", "x", "scale", "shift")
	guess, rest, invstd := v.parameter("guess"), v.parameter("rest"), v.parameter("invstd")
	v.each(2, p, func(offset int) {
		x, shift := v.load(at(p[1], offset)), v.load(at(p[3], offset))
		VSUBPS(guess, x, x)
		VSUBPS(rest, x, x)
		VMULPS(invstd, x, x)
		VFMADD132PS(v.operand(at(p[2], offset)), shift, x)
		v.store(x, at(p[0], offset))
	})
	end()
}

// layerNormSums emits the first pass of the gradient.
func (v *lanes) layerNormSums() {
	v.function("layerNormSums", "func(dscale, dshift, dy, x, scale *float32, mean, invstd float32, n int) (sum, product float32)",
		"adds to dscale and dshift, and returns the sums of dy*scale and of dy*scale*(x-mean)*invstd")
	p := pointers("dscale", "dshift", "dy", "x", "scale")
	mean, invstd := v.parameter("mean"), v.parameter("invstd")
	sum, product := []VecVirtual{v.zero(), v.zero()}, []VecVirtual{v.zero(), v.zero()}
	v.each(2, p, func(offset int) {
		chain := offset / v.bytes % 2
		g, normal := v.load(at(p[2], offset)), v.load(at(p[3], offset))
		VSUBPS(mean, normal, normal)
		VMULPS(invstd, normal, normal)
		dscale, dshift := v.load(at(p[0], offset)), v.register()
		VFMADD231PS(normal, g, dscale)
		v.store(dscale, at(p[0], offset))
		VADDPS(v.operand(at(p[1], offset)), g, dshift)
		v.store(dshift, at(p[1], offset))
		VMULPS(v.operand(at(p[4], offset)), g, g)
		VADDPS(g, sum[chain], sum[chain])
		VFMADD231PS(normal, g, product[chain])
	})
	VADDPS(sum[1], sum[0], sum[0])
	VADDPS(product[1], product[0], product[0])
	v.results(v.fold(sum[0], VADDPS), v.fold(product[0], VADDPS))
}

// layerNormOutputs emits dx = invstd * (dy*scale - average - (x-mean)*invstd*slope).
func (v *lanes) layerNormOutputs(name string, add bool) {
	v.function(name, "func(dx, dy, x, scale *float32, mean, invstd, average, slope float32, n int)", "computes the gradient of the input")
	p := pointers("dx", "dy", "x", "scale")
	mean, invstd := v.parameter("mean"), v.parameter("invstd")
	average, slope := v.parameter("average"), v.parameter("slope")
	v.each(2, p, func(offset int) {
		g, normal := v.load(at(p[1], offset)), v.load(at(p[2], offset))
		VSUBPS(mean, normal, normal)
		VMULPS(invstd, normal, normal)
		VFMSUB132PS(v.operand(at(p[3], offset)), average, g)
		VFNMADD231PS(slope, normal, g)
		if add {
			sum := v.load(at(p[0], offset))
			VFMADD231PS(invstd, g, sum)
			v.store(sum, at(p[0], offset))
			return
		}
		VMULPS(invstd, g, g)
		v.store(g, at(p[0], offset))
	})
	end()
}
