package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// sigmoid returns s = 1/(1+e) and e = exp(-x); 1-s is e*s without cancellation.
func (v *lanes) sigmoid(x VecVirtual) (s, e VecVirtual) {
	negative, s := v.register(), v.register()
	v.with(VXORPS, VXORPS_BCST, v.bits(1<<31), x, negative)
	e = v.exp(negative)
	below := v.register()
	v.with(VADDPS, VADDPS_BCST, v.float(1), e, below)
	v.fill(s, v.float(1))
	VDIVPS(below, s, s)
	return s, e
}

// gate is an activation of the form x * gate(x). Where x is below least the gate
// is 0, to what counts.
type gate struct {
	name  string
	least float64
	// value returns gate(x); both returns x * gate'(x), too. They may use up x.
	value func(x VecVirtual) VecVirtual
	both  func(x VecVirtual) (value, slope VecVirtual)
}

func gates(v *lanes) []gate {
	silu := func(x VecVirtual) (s, slope VecVirtual) {
		v.clamp(x, -88, 88)
		s, e := v.sigmoid(x)
		slope = v.register()
		VMULPS(e, s, slope)
		VMULPS(s, slope, slope)
		VMULPS(x, slope, slope)
		return s, slope
	}
	// sigmoid(2u) is (1+tanh(u))/2; at -10 it is 1e-38, at -11 exp overflows and it
	// is 0.
	cubic := func(x VecVirtual, limit float64) (argument, square VecVirtual) {
		v.clamp(x, -limit, limit)
		square = v.register()
		VMULPS(x, x, square)
		k := 2 * math.Sqrt(2/math.Pi)
		argument = v.polynomial(square, k, k*0.044715)
		VMULPS(x, argument, argument)
		return argument, square
	}
	half := func(x VecVirtual) VecVirtual {
		v.clamp(x, -geluLimit, geluLimit)
		y := v.quotient(x, geluAbove, geluBelow)
		v.with(VFMADD213PS, VFMADD213PS_BCST, v.float(0.5), x, y)
		return y
	}
	return []gate{
		{"gelu", -geluLimit, half, func(x VecVirtual) (value, slope VecVirtual) {
			value = half(x)
			slope = v.register()
			VMULPS(x, x, slope)
			v.with(VMULPS, VMULPS_BCST, v.float(-0.5), slope, slope)
			slope = v.exp(slope)
			v.with(VMULPS, VMULPS_BCST, v.float(1/math.Sqrt(2*math.Pi)), slope, slope)
			VMULPS(x, slope, slope)
			return value, slope
		}},
		{"geluTanh", -11, func(x VecVirtual) VecVirtual {
			u, _ := cubic(x, 11)
			s, _ := v.sigmoid(u)
			return s
		}, func(x VecVirtual) (value, slope VecVirtual) {
			u, square := cubic(x, 10)
			s, e := v.sigmoid(u)
			k := 2 * math.Sqrt(2/math.Pi)
			slope = v.polynomial(square, k, k*3*0.044715)
			VMULPS(x, slope, slope)
			VMULPS(s, slope, slope) // before e, or it overflows
			VMULPS(e, slope, slope)
			VMULPS(s, slope, slope)
			return s, slope
		}},
		{"silu", -88, func(x VecVirtual) VecVirtual {
			s, _ := v.sigmoid(x)
			return s
		}, silu},
	}
}

func (v *lanes) gated(g gate) {
	v.elementwise(g.name, "sets y = "+g.name+"(x)", func(x VecVirtual) VecVirtual {
		// Not -infinity times 0.
		factor := v.atLeast(x, g.least)
		y := g.value(x)
		VMULPS(factor, y, y)
		return y
	})
}

// slope returns what computes the derivative at x.
func (g gate) slope(v *lanes) func(x VecVirtual) VecVirtual {
	return func(x VecVirtual) VecVirtual {
		value, slope := g.both(x)
		VADDPS(value, slope, slope)
		return slope
	}
}

// gradient emits dx = dy * slope(saved), and a form that adds to dx. slope may
// use its argument up.
func (v *lanes) gradient(name, saved string, slope func(VecVirtual) VecVirtual) {
	for _, add := range []bool{false, true} {
		verb := "sets dx to"
		if add {
			name += "Add"
			verb = "adds to dx"
		}
		v.function(name, "func(dx, dy, "+saved+" *float32, n int)", verb+" dy times the derivative")
		p := pointers("dx", "dy", saved)
		v.each(1, p, func(offset int) {
			d := slope(v.load(at(p[2], offset)))
			VMULPS(v.operand(at(p[1], offset)), d, d)
			if add {
				VADDPS(v.operand(at(p[0], offset)), d, d)
			}
			v.store(d, at(p[0], offset))
		})
		end()
	}
}
