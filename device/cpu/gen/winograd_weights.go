package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// weights emits the transform of 3 x 3 weights.
func (e *transform) weights() {
	e.begin("Weights", "func(u, lines, temporary *float32, slab, tap, item, n int)",
		"transforms n times nine lines into the positions at u. Lines lie tap bytes apart, 3 x 3 of them item bytes; temporary has 18.")
	u, lines, temporary, slab, item := param("u"), param("lines"), param("temporary"), param("slab"), param("item")
	tap, to := param("tap"), GP64()
	taps := []*rows{newRows(lines, tap), nil}
	taps[1] = newRows(taps[0].upper, tap)
	loop("next", param("n"), func() {
		for part := range e.parts {
			for s := range 3 {
				g := []VecVirtual{
					e.load(taps[0].at(s, part*e.bytes)), e.load(taps[0].at(3+s, part*e.bytes)), e.load(taps[1].at(3+s, part*e.bytes)),
				}
				for i, v := range e.form.weight(e, g) {
					VMOVUPS(v, at(temporary, 64*(3*i+s)))
				}
			}
			MOVQ(u, to)
			for i := range e.form.points {
				g := make([]VecVirtual, 3)
				for s := range g {
					g[s] = e.load(at(temporary, 64*(3*i+s)))
				}
				for _, v := range e.form.weight(e, g) {
					VMOVUPS(v, at(to, part*e.bytes))
					ADDQ(slab, to)
				}
			}
		}
		ADDQ(item, taps[0].lower)
		ADDQ(item, taps[0].upper)
		ADDQ(item, taps[1].upper)
		ADDQ(U32(64), u)
	})
	end()
}

// weightsGradient emits the adjoint of weights.
func (e *transform) weightsGradient() {
	points := e.form.points
	e.begin("WeightsGradient", "func(lines, u, temporary *float32, slab, n int)",
		"transforms n times the positions at u into nine lines (3 x 3 taps); temporary has 18 lines.")
	lines, u, temporary, slab := param("lines"), param("u"), param("temporary"), param("slab")
	from := GP64()
	loop("next", param("n"), func() {
		for part := range e.parts {
			MOVQ(u, from)
			for i := range points {
				v := make([]VecVirtual, points)
				for j := range v {
					v[j] = e.load(at(from, part*e.bytes))
					ADDQ(slab, from)
				}
				for s, g := range e.form.weightGradient(e, v) {
					VMOVUPS(g, at(temporary, 64*(3*i+s)))
				}
			}
			for s := range 3 {
				v := make([]VecVirtual, points)
				for i := range v {
					v[i] = e.load(at(temporary, 64*(3*i+s)))
				}
				for r, g := range e.form.weightGradient(e, v) {
					VMOVUPS(g, at(lines, 64*(3*r+s)+part*e.bytes))
				}
			}
		}
		ADDQ(U32(9*64), lines)
		ADDQ(U32(64), u)
	})
	end()
}
