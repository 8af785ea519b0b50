package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transpose emits 16 rows by n columns, in squares of 8 x 8.
func transpose() {
	function("transposeAVX2", "func(dst, src *float32, stride, n int)",
		"sets dst[k*16+i] = src[i*stride+k] for 16 rows and n columns, a multiple of 8. stride is in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, n := Load(Param("stride"), GP64()), Load(Param("n"), GP64())
	upper, three, row := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	Label("loop")
	MOVQ(src, row)
	for half := range 2 {
		LEAQ(Mem{Base: row, Index: stride, Scale: 4}, upper)
		r := vectors(8)
		for i, base := range []Register{row, upper} {
			VMOVUPS(Mem{Base: base}, r[4*i])
			VMOVUPS(Mem{Base: base, Index: stride, Scale: 1}, r[4*i+1])
			VMOVUPS(Mem{Base: base, Index: stride, Scale: 2}, r[4*i+2])
			VMOVUPS(Mem{Base: base, Index: three, Scale: 1}, r[4*i+3])
		}
		for k, v := range square(r) {
			VMOVUPS(v, at(dst, k*64+half*32))
		}
		LEAQ(Mem{Base: row, Index: stride, Scale: 8}, row)
	}
	ADDQ(U32(8*64), dst)
	ADDQ(U32(32), src)
	SUBQ(U32(8), n)
	JNZ(LabelRef("loop"))
	end()
}

// square returns the columns of eight rows.
func square(r []VecVirtual) []VecVirtual {
	pairs := vectors(8)
	for i := range 4 {
		VUNPCKLPS(r[2*i+1], r[2*i], pairs[2*i])
		VUNPCKHPS(r[2*i+1], r[2*i], pairs[2*i+1])
	}
	// quads[4*h+j] holds columns j and j+4 of rows 4h..4h+3.
	quads := vectors(8)
	for h := range 2 {
		for j := range 2 {
			a, b := pairs[4*h+j], pairs[4*h+2+j]
			VSHUFPS(U8(0x44), b, a, quads[4*h+2*j])
			VSHUFPS(U8(0xee), b, a, quads[4*h+2*j+1])
		}
	}
	out := vectors(8)
	for j := range 4 {
		VPERM2F128(U8(0x20), quads[4+j], quads[j], out[j])
		VPERM2F128(U8(0x31), quads[4+j], quads[j], out[4+j])
	}
	return out
}
