package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// layers are the updates of RMSProp, AdaGrad and LAMB.
func layers() {
	rmsProp("rmsPropAVX2", false)
	rmsProp("rmsPropMomentumAVX2", true)
	adaGrad()
	lambMoments()
	lambStep()
}

// The positions of cpu.rmsNumbers.
const (
	rmsScale = iota
	rmsDecay
	rmsKeep
	rmsRest
	rmsEpsilon
	rmsMomentum
	rmsRate
	rmsNumbers
)

// normalised divides g by sqrt(s) + epsilon; s is lost.
func normalised(g, s, epsilon VecVirtual) {
	VSQRTPS(s, s)
	VADDPS(epsilon, s, s)
	VDIVPS(s, g, g)
}

func rmsProp(name string, momentum bool) {
	signature, names := "func(w, grad, square, numbers *float32, n int)", []string{"w", "grad", "square", "numbers"}
	if momentum {
		signature, names = "func(w, grad, square, momentum, numbers *float32, n int)", []string{"w", "grad", "square", "momentum", "numbers"}
	}
	function(name, signature, "makes a step of n elements, a multiple of 8; numbers is a cpu.rmsNumbers.")
	p := pointers(names...)
	last := len(p) - 1
	c := broadcasts(p[last], rmsNumbers)
	each("", eighths(), 1, vectorBytes, p[:last], func(offset int) {
		g, weight := decayed(p[1], p[0], offset, c[rmsScale], c[rmsDecay])
		s, t := YMM(), YMM()
		VMULPS(at(p[2], offset), c[rmsKeep], s)
		VMULPS(g, c[rmsRest], t)
		VMULPS(g, t, t)
		VADDPS(t, s, s)
		VMOVUPS(s, at(p[2], offset))
		normalised(g, s, c[rmsEpsilon])
		if momentum {
			VMULPS(at(p[3], offset), c[rmsMomentum], t)
			VADDPS(t, g, g)
			VMOVUPS(g, at(p[3], offset))
		}
		descend(p[0], offset, weight, g, c[rmsRate])
	})
	end()
}

func adaGrad() {
	function("adaGradAVX2", "func(w, grad, sum, numbers *float32, n int)", "makes a step of n elements, a multiple of 8; numbers is a cpu.rmsNumbers.")
	p := pointers("w", "grad", "sum", "numbers")
	c := broadcasts(p[3], rmsNumbers)
	each("", eighths(), 1, vectorBytes, p[:3], func(offset int) {
		g, weight := decayed(p[1], p[0], offset, c[rmsScale], c[rmsDecay])
		s := YMM()
		VMULPS(g, g, s)
		VADDPS(at(p[2], offset), s, s)
		VMOVUPS(s, at(p[2], offset))
		normalised(g, s, c[rmsEpsilon])
		descend(p[0], offset, weight, g, c[rmsRate])
	})
	end()
}

// direction makes the update of LAMB, before its rate, in m; v is lost.
func direction(weight Mem, m, v VecVirtual, c []VecVirtual) {
	VSQRTPS(v, v)
	VMULPS(c[adamRoot], v, v)
	VADDPS(c[adamEpsilon], v, v)
	VMULPS(c[adamShrink], m, m)
	VDIVPS(v, m, m)
	VMULPS(weight, c[adamDecay], v)
	VADDPS(v, m, m)
}

func lambMoments() {
	function("lambMomentsAVX2", "func(w, grad, m, v, numbers *float32, n int) float64",
		"advances the moments of n elements, a multiple of 8, and returns the sum of the squares of their directions; numbers is a cpu.adamNumbers.")
	p := pointers("w", "grad", "m", "v", "numbers")
	c := broadcasts(p[4], adamNumbers)
	low, high := zero(), zero()
	each("", eighths(), 1, vectorBytes, p[:4], func(offset int) {
		g, m, v, t := YMM(), YMM(), YMM(), YMM()
		VMULPS(at(p[1], offset), c[adamScale], g)
		VMULPS(at(p[2], offset), c[adamBeta1], m)
		VMULPS(g, c[adamRest1], t)
		VADDPS(t, m, m)
		VMOVUPS(m, at(p[2], offset))
		VMULPS(at(p[3], offset), c[adamBeta2], v)
		VMULPS(g, c[adamRest2], t)
		VMULPS(g, t, t)
		VADDPS(t, v, v)
		VMOVUPS(v, at(p[3], offset))
		direction(at(p[0], offset), m, v, c)
		wide := YMM()
		VCVTPS2PD(m.AsX(), wide)
		VFMADD231PD(wide, wide, low) // squares of float32 are exact in float64
		VEXTRACTF128(U8(1), m, m.AsX())
		VCVTPS2PD(m.AsX(), wide)
		VFMADD231PD(wide, wide, high)
	})
	VADDPD(high, low, low)
	VEXTRACTF128(U8(1), low, high.AsX())
	VADDPD(high.AsX(), low.AsX(), low.AsX())
	VHADDPD(low.AsX(), low.AsX(), low.AsX())
	Store(low.AsX(), ReturnIndex(0))
	end()
}

func lambStep() {
	function("lambStepAVX2", "func(w, m, v, numbers *float32, n int)", "makes a step of n elements, a multiple of 8; numbers is a cpu.adamNumbers.")
	p := pointers("w", "m", "v", "numbers")
	c := broadcasts(p[3], adamNumbers)
	each("", eighths(), 2, vectorBytes, p[:3], func(offset int) {
		weight, m, v := YMM(), YMM(), YMM()
		VMOVUPS(at(p[1], offset), m)
		VMOVUPS(at(p[2], offset), v)
		direction(at(p[0], offset), m, v, c)
		VMOVUPS(at(p[0], offset), weight)
		descend(p[0], offset, weight, m, c[adamRate])
	})
	end()
}
