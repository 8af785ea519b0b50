package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// untranspose emits n lines of 16 to 16 rows of n, in squares of 8 x 8.
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
		MOVQ(dst, row)
		for half := range 2 {
			LEAQ(Mem{Base: row, Index: stride, Scale: 4}, upper)
			r := vectors(8)
			for k := range r {
				VMOVUPS(at(src, k*64+half*32), r[k])
			}
			for i, v := range square(r) {
				base := []Register{row, upper}[i/4]
				to := []Mem{{Base: base}, {Base: base, Index: stride, Scale: 1}, {Base: base, Index: stride, Scale: 2}, {Base: base, Index: three, Scale: 1}}[i%4]
				if adding {
					VADDPS(to, v, v)
				}
				VMOVUPS(v, to)
			}
			LEAQ(Mem{Base: row, Index: stride, Scale: 8}, row)
		}
		ADDQ(U32(32), dst)
		ADDQ(U32(8*64), src)
		SUBQ(U32(8), n)
		JNZ(LabelRef(name))
		end()
	}
}
