package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// halves emits the conversions of the 16-bit types, eight elements at a time.
func halves() {
	widening("widenF16AVX2", "F16", false, wideF16)
	widening("widenBF16AVX2", "BF16", false, wideBF16)
	widening("addF16AVX2", "F16", true, wideF16)
	widening("addBF16AVX2", "BF16", true, wideBF16)
	narrowF16()
	narrowBF16()
}

const halfBytes = vectorBytes / 2

// wideF16 loads eight F16 as float32.
func wideF16(from Mem, to VecVirtual) { VCVTPH2PS(from, to) }

// wideBF16 puts eight BF16 into the upper halves of float32.
func wideBF16(from Mem, to VecVirtual) {
	VPMOVZXWD(from, to)
	VPSLLD(U8(16), to, to)
}

// widening emits dst = src, or dst += src, in float32.
func widening(name, format string, add bool, load func(from Mem, to VecVirtual)) {
	verb := "converts n elements of " + format
	if add {
		verb = "adds n elements of " + format + " to dst"
	}
	function(name, "func(dst *float32, src *uint16, n int)", verb+", a multiple of 8.")
	eachHalf(4, vectorBytes, halfBytes, func(dst, src Mem) {
		v := YMM()
		load(src, v)
		if add {
			VADDPS(dst, v, v)
		}
		VMOVUPS(v, dst)
	})
}

// eachHalf emits body for all vectors of n elements, unroll at a time and then
// one at a time. The bytes of a vector differ between dst and src.
func eachHalf(unroll, dstBytes, srcBytes int, body func(dst, src Mem)) {
	p := pointers("dst", "src")
	n := eighths()
	for _, count := range []int{unroll, 1} {
		top, done := "loop"+suffix(count), "done"+suffix(count)
		Label(top)
		CMPQ(n, U32(count))
		JLT(LabelRef(done))
		for u := range count {
			body(at(p[0], u*dstBytes), at(p[1], u*srcBytes))
		}
		ADDQ(U32(count*dstBytes), p[0])
		ADDQ(U32(count*srcBytes), p[1])
		SUBQ(U32(count), n)
		JMP(LabelRef(top))
		Label(done)
	}
	end()
}

func narrowF16() {
	function("narrowF16AVX2", "func(dst *uint16, src *float32, n int)", "rounds n elements to F16, a multiple of 8.")
	narrowing(func(v VecVirtual, to Mem) { VCVTPS2PH(U8(0), v, to) })
}

// narrowBF16 rounds to nearest even by adding half of what is dropped, less one
// where the last kept bit is 0; NaN is made quiet instead.
func narrowBF16() {
	function("narrowBF16AVX2", "func(dst *uint16, src *float32, n int)", "rounds n elements to BF16, a multiple of 8.")
	half, one, quiet := constant(0x7fff), constant(1), constant(0x40)
	narrowing(func(v VecVirtual, to Mem) {
		unordered, upper, odd := YMM(), YMM(), YMM()
		VCMPPS(U8(3), v, v, unordered)
		VPSRLD(U8(16), v, upper)
		VPAND(one, upper, odd)
		VPOR(quiet, upper, upper)
		VPADDD(half, v, v)
		VPADDD(odd, v, v)
		VPSRLD(U8(16), v, v)
		VBLENDVPS(unordered, upper, v, v)
		VPACKUSDW(v, v, v)
		VPERMQ(U8(0x08), v, v)
		VMOVDQU(v.AsX(), to)
	})
}

// constant is a vector of eight equal integers.
func constant(bits uint32) VecVirtual {
	scalar, v := GP32(), YMM()
	MOVL(U32(bits), scalar)
	VMOVD(scalar, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

func narrowing(store func(v VecVirtual, to Mem)) {
	eachHalf(2, halfBytes, vectorBytes, func(dst, src Mem) {
		v := YMM()
		VMOVUPS(src, v)
		store(v, dst)
	})
}
