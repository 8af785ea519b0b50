package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// decayed loads g = scale*grad + decay*w and w.
func decayed(grad, w Register, offset int, scale, decay VecVirtual) (g, weight VecVirtual) {
	g, weight = YMM(), YMM()
	product := YMM()
	VMULPS(at(grad, offset), scale, g)
	VMOVUPS(at(w, offset), weight)
	VMULPS(weight, decay, product)
	VADDPS(product, g, g)
	return g, weight
}

// descend stores w - rate*g.
func descend(w Register, offset int, weight, g, rate VecVirtual) {
	step := YMM()
	VMULPS(g, rate, step)
	VSUBPS(step, weight, weight)
	VMOVUPS(weight, at(w, offset))
}

func sgd() {
	function("sgdAVX2", "func(w, grad, numbers *float32, n int)", "makes a step of n elements, a multiple of 8; numbers is a cpu.sgdNumbers.")
	p := pointers("w", "grad", "numbers")
	c := broadcasts(p[2], 3)
	each("", eighths(), 2, vectorBytes, p[:2], func(offset int) {
		g, weight := decayed(p[1], p[0], offset, c[0], c[1])
		descend(p[0], offset, weight, g, c[2])
	})
	end()
}

func sgdMomentum(name string, nesterov bool) {
	function(name, "func(w, grad, momentum, numbers *float32, n int)", "makes a step of n elements, a multiple of 8; numbers is a cpu.sgdNumbers.")
	p := pointers("w", "grad", "momentum", "numbers")
	c := broadcasts(p[3], 5)
	each("", eighths(), 2, vectorBytes, p[:3], func(offset int) {
		g, weight := decayed(p[1], p[0], offset, c[0], c[1])
		m, kept := YMM(), YMM()
		VMULPS(at(p[2], offset), c[3], m)
		VMULPS(g, c[4], kept)
		VADDPS(kept, m, m)
		VMOVUPS(m, at(p[2], offset))
		if nesterov {
			VMULPS(m, c[3], m)
			VADDPS(m, g, m)
		}
		descend(p[0], offset, weight, m, c[2])
	})
	end()
}

// The positions of cpu.adamNumbers.
const (
	adamScale = iota
	adamDecay
	adamShrink
	adamBeta1
	adamRest1
	adamBeta2
	adamRest2
	adamRoot
	adamEpsilon
	adamRate
	adamNumbers
)

func adam() {
	function("adamAVX2", "func(w, grad, m, v, numbers *float32, n int)", "makes a step of n elements, a multiple of 8; numbers is a cpu.adamNumbers.")
	p := pointers("w", "grad", "m", "v", "numbers")
	c := broadcasts(p[4], adamNumbers)
	each("", eighths(), 1, vectorBytes, p[:4], func(offset int) {
		g, weight := decayed(p[1], p[0], offset, c[adamScale], c[adamDecay])
		m, v, t := YMM(), YMM(), YMM()
		VMULPS(at(p[2], offset), c[adamBeta1], m)
		VMULPS(g, c[adamRest1], t)
		VADDPS(t, m, m)
		VMOVUPS(m, at(p[2], offset))
		VMULPS(at(p[3], offset), c[adamBeta2], v)
		VMULPS(g, c[adamRest2], t)
		VMULPS(g, t, t)
		VADDPS(t, v, v)
		VMOVUPS(v, at(p[3], offset))
		VSQRTPS(v, v)
		VMULPS(c[adamRoot], v, v)
		VADDPS(c[adamEpsilon], v, v)
		VDIVPS(v, m, m)
		VMULPS(c[adamShrink], weight, weight)
		descend(p[0], offset, weight, m, c[adamRate])
	})
	end()
}
