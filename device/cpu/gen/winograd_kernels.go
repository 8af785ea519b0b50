package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// VXOR clears v in any width.
func VXOR(v VecVirtual) {
	if v.Size() == 64 {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// down emits the first half of a transform of images: a column of in pixels, one
// from each of the lines, becomes a column of the table.
func (e *transform) down(what string, f func(*transform, []VecVirtual) []VecVirtual, in, out int) {
	e.begin(what+"Down", "func(lines *uint64, table *float32, pitch, n int)",
		fmt.Sprintf("transforms n columns of %d pixels into columns of the table.", in))
	from := lineRows(in)
	below := e.below(from)
	table := newRows(param("table"), param("pitch"))
	loop("column", param("n"), func() {
		e.fetchBelow(from[in-e.form.outputs:], below)
		for part := range e.parts {
			d := make([]VecVirtual, in)
			for i := range d {
				d[i] = e.load(at(from[i], part*e.bytes))
			}
			for i, v := range f(e, d) {
				VMOVUPS(v, table.at(i, part*e.bytes))
			}
		}
		for _, r := range from {
			ADDQ(U32(64), r)
		}
		table.advance(64)
	})
	end()
}

// across emits the second half: in pixels of a row of the table become points
// positions of a tile.
func (e *transform) across(what string, f func(*transform, []VecVirtual) []VecVirtual, in int) {
	e.begin(what+"Across", "func(v, table *float32, slab, pitch, tiles int)",
		fmt.Sprintf("transforms rows of the table, %d pixels a tile, into the positions of tiles.", in))
	v, table, slab, pitch := param("v"), param("table"), param("slab"), param("pitch")
	row, pixel, tiles := GP64(), GP64(), GP64()
	e.nearAndFar(slab, func(name string, far bool) {
		MOVQ(U32(e.form.points), row)
		loop(name+"row", row, func() {
			to := newRows(v, slab)
			MOVQ(table, pixel)
			Load(Param("tiles"), tiles)
			loop(name+"tile", tiles, func() {
				if far {
					e.fetchTiles(to)
				}
				for part := range e.parts {
					d := make([]VecVirtual, in)
					for j := range d {
						d[j] = e.load(at(pixel, 64*j+part*e.bytes))
					}
					for j, x := range f(e, d) {
						VMOVUPS(x, to.at(j, part*e.bytes))
					}
				}
				ADDQ(U32(64*e.form.outputs), pixel)
				to.advance(64)
			})
			ADDQ(pitch, table)
			e.nextSlabs(v, slab)
		})
	})
}

// nextSlabs moves v on by one row of positions.
func (e *transform) nextSlabs(v, slab Register) {
	LEAQ(Mem{Base: v, Index: slab, Scale: 4}, v)
	if e.form.points == 6 {
		LEAQ(Mem{Base: v, Index: slab, Scale: 2}, v)
	}
}

// outputAcross emits the first half of the way back from positions.
func (e *transform) outputAcross() {
	e.begin("OutputAcross", "func(table, m *float32, pitch, slab, tiles int)",
		fmt.Sprintf("transforms the positions of tiles into rows of the table, %d pixels a tile.", e.form.outputs))
	table, m, pitch, slab := param("table"), param("m"), param("pitch"), param("slab")
	row, pixel, tiles := GP64(), GP64(), GP64()
	e.nearAndFar(slab, func(name string, far bool) {
		MOVQ(U32(e.form.points), row)
		loop(name+"row", row, func() {
			from := newRows(m, slab)
			MOVQ(table, pixel)
			Load(Param("tiles"), tiles)
			loop(name+"tile", tiles, func() {
				if far {
					e.fetchTiles(from)
				}
				for part := range e.parts {
					for j, y := range e.form.output(e, e.positions(from, part)) {
						VMOVUPS(y, at(pixel, 64*j+part*e.bytes))
					}
				}
				ADDQ(U32(64*e.form.outputs), pixel)
				from.advance(64)
			})
			ADDQ(pitch, table)
			e.nextSlabs(m, slab)
		})
	})
}

func (e *transform) positions(from *rows, part int) []VecVirtual {
	v := make([]VecVirtual, e.form.points)
	for j := range v {
		v[j] = e.load(from.at(j, part*e.bytes))
	}
	return v
}

// outputDown emits the second half: columns of the table become pixels.
func (e *transform) outputDown() {
	e.begin("OutputDown", "func(lines *uint64, table, bias *float32, pitch, n int)",
		fmt.Sprintf("transforms n columns of the table into %d lines and adds the bias, 16 floats.", e.form.outputs))
	to := lineRows(e.form.outputs)
	below := e.below(to)
	table := newRows(param("table"), param("pitch"))
	bias := param("bias")
	loop("column", param("n"), func() {
		e.fetchBelow(to, below)
		for part := range e.parts {
			for i, y := range e.form.output(e, e.positions(table, part)) {
				VADDPS(at(bias, part*e.bytes), y, y)
				VMOVUPS(y, at(to[i], part*e.bytes))
			}
		}
		for _, r := range to {
			ADDQ(U32(64), r)
		}
		table.advance(64)
	})
	end()
}

// inputAcross emits the adjoint of across: tiles overlap by two pixels, which
// are carried from one tile to the next in registers.
func (e *transform) inputAcross() {
	e.begin("InputAcross", "func(table, m *float32, pitch, slab, tiles int)",
		fmt.Sprintf("adds up the pixels of overlapping tiles in rows of the table, %d pixels a tile and 2 more.", e.form.outputs))
	table, m, pitch, slab := param("table"), param("m"), param("pitch"), param("slab")
	row, pixel, tiles := GP64(), GP64(), GP64()
	outputs := e.form.outputs
	e.nearAndFar(slab, func(name string, far bool) {
		MOVQ(U32(e.form.points), row)
		loop(name+"row", row, func() {
			for part := range e.parts {
				from := newRows(m, slab)
				MOVQ(table, pixel)
				Load(Param("tiles"), tiles)
				carry := []VecVirtual{e.register(), e.register()}
				VXOR(carry[0])
				VXOR(carry[1])
				loop(fmt.Sprintf("%stile%d", name, part), tiles, func() {
					if far {
						e.fetchTiles(from)
					}
					d := e.form.dataAdjoint(e, e.positions(from, part))
					for j := range outputs {
						if j < 2 {
							VADDPS(d[j], carry[j], d[j])
						}
						VMOVUPS(d[j], at(pixel, 64*j+part*e.bytes))
					}
					for j, c := range carry {
						VMOVAPS(d[outputs+j], c)
					}
					ADDQ(U32(64*outputs), pixel)
					from.advance(64)
				})
				for j, c := range carry {
					VMOVUPS(c, at(pixel, 64*j+part*e.bytes))
				}
			}
			ADDQ(pitch, table)
			e.nextSlabs(m, slab)
		})
	})
}

// inputDown emits the adjoint of down: rows of tiles overlap by two lines, which
// are carried in memory.
func (e *transform) inputDown() {
	outputs := e.form.outputs
	e.begin("InputDown", "func(lines *uint64, table, carry *float32, pitch, n, accumulate int)",
		fmt.Sprintf("transforms n columns of the table into %d lines and the carry of two lines, pitch bytes apart, for the tiles below.", outputs))
	to := lineRows(outputs)
	below := e.below(to)
	pitch := param("pitch")
	table := newRows(param("table"), pitch)
	carry := param("carry")
	n, accumulate := param("n"), param("accumulate")
	TESTQ(accumulate, accumulate)
	JNZ(LabelRef("adding"))
	for _, adding := range []bool{false, true} {
		name := "column"
		if adding {
			name = "adding"
		}
		loop(name, n, func() {
			e.fetchBelow(to, below)
			for part := range e.parts {
				d := e.form.dataAdjoint(e, e.positions(table, part))
				carried := []Mem{{Base: carry, Disp: part * e.bytes}, {Base: carry, Index: pitch, Scale: 1, Disp: part * e.bytes}}
				for i := range outputs {
					if i < 2 {
						VADDPS(carried[i], d[i], d[i])
						VMOVUPS(d[outputs+i], carried[i])
					}
					if adding {
						VADDPS(at(to[i], part*e.bytes), d[i], d[i])
					}
					VMOVUPS(d[i], at(to[i], part*e.bytes))
				}
			}
			for _, r := range to {
				ADDQ(U32(64), r)
			}
			table.advance(64)
			ADDQ(U32(64), carry)
		})
		end()
	}
}
