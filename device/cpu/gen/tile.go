package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of cpu.tile; cpu.TestTileOffsets holds them.
const (
	tileA       = 0
	tileB       = 8
	tileC       = 16
	tileRows    = 24
	tileSteps   = 32
	tileBias    = 40
	tileMask    = 48
	tileBlocks  = 56
	tileSingles = 64
	tileSize    = 72
	tileGroups  = 80
	tileSmall   = 88
	tileFlags   = 96
	tileStrideB = 104
	tileStrideC = 112
)

const (
	flagAccumulate = 1
	flagReLU       = 2
	flagMask       = 4
	flagClear      = 8
)

const maxRows = 6

// tileFunction holds the registers that all row counts share.
type tileFunction struct {
	t, rows, groups Register
	base            [maxRows]Register
	b, steps        Register
	step, count     Register
}

// tile emits the matrix product with variants for 1 to 6 rows. A variant keeps
// its sums in 2 registers a row; 2 hold a line of B and 2 take broadcasts of A.
func tile() {
	function("tileAVX2", "func(t *uint64)", "computes the tile at t, whose groups are not 0.")
	f := &tileFunction{t: Load(Param("t"), GP64()), rows: GP64(), groups: GP64(), b: GP64(), steps: GP64(), step: GP64(), count: GP64()}
	for i := range f.base {
		f.base[i] = GP64()
	}
	MOVQ(at(f.t, tileRows), f.rows)
	MOVQ(at(f.t, tileGroups), f.groups)

	Label("next")
	// The last groups have one row less.
	MOVQ(at(f.t, tileSize), f.step)
	CMPQ(f.groups, at(f.t, tileSmall))
	JGT(LabelRef("sized"))
	DECQ(f.step)
	Label("sized")
	for n := maxRows; n > 1; n-- {
		CMPQ(f.step, U32(n))
		JEQ(LabelRef(fmt.Sprintf("rows%d", n)))
	}
	for n := 1; n <= maxRows; n++ {
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

func (f *tileFunction) variant(n int) {
	for i := range n {
		MOVQ(at(f.rows, 16*i), f.base[i])
		ADDQ(at(f.t, tileA), f.base[i])
	}
	MOVQ(at(f.t, tileB), f.b)
	MOVQ(at(f.t, tileSteps), f.steps)
	sums := vectors(2 * n)
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	name := fmt.Sprintf("rows%d", n)
	MOVQ(at(f.t, tileBlocks), f.count)
	TESTQ(f.count, f.count)
	JZ(LabelRef(name + "singles"))
	Label(name + "block")
	MOVQ(at(f.steps, 0), f.step)
	ADDQ(U32(8), f.steps)
	for k := range 16 {
		f.multiply(sums, 4*k, 64*k)
	}
	ADDQ(U32(16*64), f.b)
	DECQ(f.count)
	JNZ(LabelRef(name + "block"))

	Label(name + "singles")
	MOVQ(at(f.t, tileSingles), f.count)
	f.singles(sums, name, 4)
	f.singles(sums, name, 1)
	f.store(sums, name)
}

// singles emits steps of one float, unroll at a time.
func (f *tileFunction) singles(sums []VecVirtual, name string, unroll int) {
	top, done := fmt.Sprintf("%ssingle%d", name, unroll), fmt.Sprintf("%sdone%d", name, unroll)
	CMPQ(f.count, U32(unroll))
	JLT(LabelRef(done))
	Label(top)
	for k := range unroll {
		MOVQ(at(f.steps, 8*k), f.step)
		f.multiply(sums, 0, 64*k)
	}
	ADDQ(U32(8*unroll), f.steps)
	ADDQ(U32(64*unroll), f.b)
	SUBQ(U32(unroll), f.count)
	CMPQ(f.count, U32(unroll))
	JGE(LabelRef(top))
	Label(done)
}

// multiply adds the product of one line of B and one float of every row.
func (f *tileFunction) multiply(sums []VecVirtual, offsetA, offsetB int) {
	low, high := YMM(), YMM()
	VMOVUPS(at(f.b, offsetB), low)
	VMOVUPS(at(f.b, offsetB+32), high)
	for i := range len(sums) / 2 {
		a := YMM()
		VBROADCASTSS(Mem{Base: f.base[i], Index: f.step, Scale: 1, Disp: offsetA}, a)
		VFMADD231PS(low, a, sums[2*i])
		VFMADD231PS(high, a, sums[2*i+1])
	}
}

// store does what the flags say and writes the rows of C.
func (f *tileFunction) store(sums []VecVirtual, name string) {
	n := len(sums) / 2
	for i := range n {
		MOVQ(at(f.rows, 16*i+8), f.base[i])
		ADDQ(at(f.t, tileC), f.base[i])
	}
	low, high := YMM(), YMM()
	MOVQ(at(f.t, tileFlags), f.count)
	TESTQ(U32(flagMask), f.count)
	JNZ(LabelRef(name + "masked"))

	TESTQ(U32(flagAccumulate), f.count)
	JZ(LabelRef(name + "fresh"))
	for i, s := range sums {
		VADDPS(at(f.base[i/2], i%2*32), s, s)
	}
	Label(name + "fresh")
	f.epilogue(sums, name+"whole")
	TESTQ(U32(flagClear), f.count)
	JZ(LabelRef(name + "full"))
	MOVQ(at(f.t, tileMask), f.b)
	for i, s := range sums {
		VANDPS(at(f.b, i%2*32), s, s)
	}
	Label(name + "full")
	for i, s := range sums {
		VMOVUPS(s, at(f.base[i/2], i%2*32))
	}
	JMP(LabelRef(name + "stored"))

	Label(name + "masked")
	MOVQ(at(f.t, tileMask), f.b)
	VMOVUPS(at(f.b, 0), low)
	VMOVUPS(at(f.b, 32), high)
	masks := []VecVirtual{low, high}
	TESTQ(U32(flagAccumulate), f.count)
	JZ(LabelRef(name + "freshmasked"))
	for i, s := range sums {
		old := YMM()
		VMASKMOVPS(at(f.base[i/2], i%2*32), masks[i%2], old)
		VADDPS(old, s, s)
	}
	Label(name + "freshmasked")
	f.epilogue(sums, name+"edge")
	for i, s := range sums {
		VMASKMOVPS(s, masks[i%2], at(f.base[i/2], i%2*32))
	}
	Label(name + "stored")
}

// epilogue adds the bias and clamps, as the flags in count say.
func (f *tileFunction) epilogue(sums []VecVirtual, name string) {
	MOVQ(at(f.t, tileBias), f.steps)
	TESTQ(f.steps, f.steps)
	JZ(LabelRef(name + "unbiased"))
	for i, s := range sums {
		VADDPS(at(f.steps, i%2*32), s, s)
	}
	Label(name + "unbiased")
	TESTQ(U32(flagReLU), f.count)
	JZ(LabelRef(name + "linear"))
	z := zero()
	for _, s := range sums {
		VMAXPS(s, z, s) // the second operand wins for NaN and -0
	}
	Label(name + "linear")
}
