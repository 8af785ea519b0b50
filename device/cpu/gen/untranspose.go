package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// untranspose emits n lines of 16 to 16 rows of n, in squares of 8 x 8: two side
// by side fill a line of the cache before other rows can push it out.
func untranspose() {
	function("untransposeAVX2", "func(dst, src *float32, stride, n, accumulate int)",
		"sets or adds dst[i*stride+k] from src[k*16+i] for 16 rows and n columns, a multiple of 8. stride is in bytes.")
	dst, src, stride, n, accumulate := param("dst"), param("src"), param("stride"), param("n"), param("accumulate")
	upper, three, row := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	TESTQ(accumulate, accumulate)
	JNZ(LabelRef("adding"))
	for _, adding := range []bool{false, true} {
		name := "setting"
		if adding {
			name = "adding"
		}
		Label(name)
		for _, squares := range []int{2, 1} {
			top, done := fmt.Sprint(name, squares), fmt.Sprint(name, squares, "done")
			Label(top)
			CMPQ(n, U32(8*squares))
			JLT(LabelRef(done))
			MOVQ(dst, row)
			for half := range 2 {
				LEAQ(Mem{Base: row, Index: stride, Scale: 4}, upper)
				for i := range squares {
					untransposeSquare(src, row, upper, stride, three, half*32, i, adding)
				}
				LEAQ(Mem{Base: row, Index: stride, Scale: 8}, row)
			}
			ADDQ(U32(32*squares), dst)
			ADDQ(U32(8*64*squares), src)
			SUBQ(U32(8*squares), n)
			JMP(LabelRef(top))
			Label(done)
		}
		end()
	}
}

// untransposeSquare turns the lines of square i into eight rows.
func untransposeSquare(src, row, upper, stride, three Register, half, i int, adding bool) {
	r := vectors(8)
	for k := range r {
		VMOVUPS(at(src, (8*i+k)*64+half), r[k])
	}
	for j, v := range square(r) {
		base := []Register{row, upper}[j/4]
		to := []Mem{{Base: base}, {Base: base, Index: stride, Scale: 1}, {Base: base, Index: stride, Scale: 2}, {Base: base, Index: three, Scale: 1}}[j%4]
		to.Disp = 32 * i
		if adding {
			VADDPS(to, v, v)
		}
		VMOVUPS(v, to)
	}
}
