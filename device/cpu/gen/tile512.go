package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// maxRows512 x 2 sums, two lines of B and some broadcasts of A fill the 32
// registers; twelve rows are also what the general registers can point to.
const maxRows512 = 12

// tile512 holds the registers and the stack that all row counts share. In the
// loops over k nothing else fits into general registers.
type tile512 struct {
	panels               int
	base                 [maxRows512]GPPhysical
	b, next, step        GPPhysical // next is the distance to the second panel
	rows, groups         Mem
	steps, count, second Mem
}

// tilesAVX512 emits the matrix product for one and for two panels of B.
func tilesAVX512() {
	tileOf("tileAVX512", 1, "computes one panel of the tile at t, whose groups are not 0.")
	tileOf("tileWideAVX512", 2, "computes two panels of the tile at t, whose groups are not 0.")
}

func tileOf(name string, panels int, doc string) {
	function(name, "func(t *uint64)", doc)
	f := &tile512{
		panels: panels,
		base:   [maxRows512]GPPhysical{RAX, RBX, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15},
		b:      RCX, next: RDX, step: RBP,
	}
	locals := AllocLocal(40)
	for i, m := range []*Mem{&f.rows, &f.groups, &f.steps, &f.count, &f.second} {
		*m = locals.Offset(8 * i)
	}
	Load(Param("t"), f.b)
	MOVQ(at(f.b, tileRows), f.step)
	MOVQ(f.step, f.rows)
	MOVQ(at(f.b, tileGroups), f.step)
	MOVQ(f.step, f.groups)

	Label("next")
	Load(Param("t"), f.b)
	MOVQ(f.rows, f.step)
	// The last groups have one row less.
	MOVQ(at(f.b, tileSize), f.next)
	MOVQ(f.groups, f.base[0])
	CMPQ(f.base[0], at(f.b, tileSmall))
	JGT(LabelRef("sized"))
	DECQ(f.next)
	Label("sized")
	for n := maxRows512; n > 1; n-- {
		CMPQ(f.next, U32(n))
		JEQ(LabelRef(fmt.Sprintf("rows%d", n)))
	}
	for n := 1; n <= maxRows512; n++ {
		Label(fmt.Sprintf("rows%d", n))
		f.variant(n)
		ADDQ(U32(16*n), f.rows)
		DECQ(f.groups)
		JNZ(LabelRef("next"))
		JMP(LabelRef("end"))
	}
	Label("end")
	end()
}

// variant finds t in b and the table of rows in step.
func (f *tile512) variant(n int) {
	for i := range n {
		MOVQ(at(f.step, 16*i), f.base[i])
		ADDQ(at(f.b, tileA), f.base[i])
	}
	MOVQ(at(f.b, tileSteps), f.step)
	MOVQ(f.step, f.steps)
	MOVQ(at(f.b, tileSingles), f.step)
	MOVQ(f.step, f.second)
	if f.panels == 2 {
		MOVQ(at(f.b, tileStrideB), f.next)
	}
	MOVQ(at(f.b, tileBlocks), f.step)
	MOVQ(f.step, f.count)
	MOVQ(at(f.b, tileB), f.b)
	sums := wideVectors(f.panels * n)
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	name := fmt.Sprintf("rows%d", n)
	TESTQ(f.step, f.step)
	JZ(LabelRef(name + "singles"))
	Label(name + "block")
	MOVQ(f.steps, f.step)
	MOVQ(Mem{Base: f.step}, f.step)
	ADDQ(U32(8), f.steps)
	for k := range 16 {
		f.multiply(sums, 4*k, 64*k)
	}
	ADDQ(U32(16*64), f.b)
	DECQ(f.count)
	JNZ(LabelRef(name + "block"))

	Label(name + "singles")
	f.singles(sums, name, 4)
	f.singles(sums, name, 1)
	f.store(sums, name)
}

// singles emits steps of one float, unroll at a time.
func (f *tile512) singles(sums []VecVirtual, name string, unroll int) {
	top, done := fmt.Sprintf("%ssingle%d", name, unroll), fmt.Sprintf("%sdone%d", name, unroll)
	CMPQ(f.second, U32(unroll))
	JLT(LabelRef(done))
	Label(top)
	for k := range unroll {
		MOVQ(f.steps, f.step)
		MOVQ(at(f.step, 8*k), f.step)
		f.multiply(sums, 0, 64*k)
	}
	ADDQ(U32(8*unroll), f.steps)
	ADDQ(U32(64*unroll), f.b)
	SUBQ(U32(unroll), f.second)
	CMPQ(f.second, U32(unroll))
	JGE(LabelRef(top))
	Label(done)
}

// multiply adds the product of a line of each panel and one float of every row.
func (f *tile512) multiply(sums []VecVirtual, offsetA, offsetB int) {
	lines := wideVectors(f.panels)
	VMOVUPS(at(f.b, offsetB), lines[0])
	if f.panels == 2 {
		VMOVUPS(Mem{Base: f.b, Index: f.next, Scale: 1, Disp: offsetB}, lines[1])
	}
	for i := range len(sums) / f.panels {
		from := Mem{Base: f.base[i], Index: f.step, Scale: 1, Disp: offsetA}
		if f.panels == 1 {
			VFMADD231PS_BCST(from, lines[0], sums[i])
			continue
		}
		a := ZMM()
		VBROADCASTSS(from, a)
		VFMADD231PS(lines[0], a, sums[2*i])
		VFMADD231PS(lines[1], a, sums[2*i+1])
	}
}

// store does what the flags say and writes the rows of C.
func (f *tile512) store(sums []VecVirtual, name string) {
	t, scratch := f.b, f.step
	Load(Param("t"), t)
	MOVQ(f.rows, scratch)
	for i := range len(sums) / f.panels {
		MOVQ(at(scratch, 16*i+8), f.base[i])
		ADDQ(at(t, tileC), f.base[i])
	}
	MOVQ(at(t, tileStrideC), f.next)
	mask := K()
	TESTQ(U32(flagMask), at(t, tileFlags))
	JNZ(LabelRef(name + "masked"))

	TESTQ(U32(flagAccumulate), at(t, tileFlags))
	JZ(LabelRef(name + "fresh"))
	for i, s := range sums {
		VADDPS(f.c(i), s, s)
	}
	Label(name + "fresh")
	f.epilogue(sums, name+"whole")
	TESTQ(U32(flagClear), at(t, tileFlags))
	JZ(LabelRef(name + "full"))
	f.loadMask(mask)
	for i := f.panels - 1; i < len(sums); i += f.panels {
		VMOVAPS_Z(sums[i], mask, sums[i])
	}
	Label(name + "full")
	for i, s := range sums {
		VMOVUPS(s, f.c(i))
	}
	JMP(LabelRef(name + "stored"))

	Label(name + "masked")
	f.loadMask(mask)
	TESTQ(U32(flagAccumulate), at(t, tileFlags))
	JZ(LabelRef(name + "freshmasked"))
	for i, s := range sums {
		if !f.last(i) {
			VADDPS(f.c(i), s, s)
			continue
		}
		VADDPS(f.c(i), s, mask, s)
	}
	Label(name + "freshmasked")
	f.epilogue(sums, name+"edge")
	for i, s := range sums {
		if !f.last(i) {
			VMOVUPS(s, f.c(i))
			continue
		}
		VMOVUPS(s, mask, f.c(i))
	}
	Label(name + "stored")
}

// last reports whether sum i belongs to the last panel, which the mask is for.
func (f *tile512) last(i int) bool { return i%f.panels == f.panels-1 }

// c returns where sum i goes.
func (f *tile512) c(i int) Mem {
	m := Mem{Base: f.base[i/f.panels]}
	if i%f.panels == 1 {
		m.Index, m.Scale = f.next, 1
	}
	return m
}

// loadMask makes a mask of the signs of 16 int32.
func (f *tile512) loadMask(mask Op) {
	v := ZMM()
	MOVQ(at(f.b, tileMask), f.step)
	VMOVUPS(at(f.step, 0), v)
	VPMOVD2M(v, mask)
}

// epilogue adds the bias and clamps, as t says.
func (f *tile512) epilogue(sums []VecVirtual, name string) {
	MOVQ(at(f.b, tileBias), f.step)
	TESTQ(f.step, f.step)
	JZ(LabelRef(name + "unbiased"))
	for i, s := range sums {
		VADDPS(at(f.step, i%f.panels*64), s, s)
	}
	Label(name + "unbiased")
	TESTQ(U32(flagReLU), at(f.b, tileFlags))
	JZ(LabelRef(name + "linear"))
	z := ZMM()
	VXORPS(z, z, z)
	for _, s := range sums {
		VMAXPS(s, z, s) // the second operand wins for NaN and -0
	}
	Label(name + "linear")
}

// wideVectors returns n fresh registers of 512 bits.
func wideVectors(n int) []VecVirtual {
	out := make([]VecVirtual, n)
	for i := range out {
		out[i] = ZMM()
	}
	return out
}
