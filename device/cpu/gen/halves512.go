package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// halves512 emits the conversions of the 16-bit types, sixteen elements at a
// time.
func halves512() {
	const wide, half = 64, 32
	widen := func(name, format string, load func(from Mem, to VecVirtual)) {
		function(name, "func(dst *float32, src *uint16, n int)", "converts n elements of "+format+", a multiple of 16.")
		eachSixteen(wide, half, func(dst, src Mem) {
			v := ZMM()
			load(src, v)
			VMOVUPS(v, dst)
		})
	}
	widen("widenF16AVX512", "F16", func(from Mem, to VecVirtual) { VCVTPH2PS(from, to) })
	widen("widenBF16AVX512", "BF16", func(from Mem, to VecVirtual) {
		VPMOVZXWD(from, to)
		VPSLLD(U8(16), to, to)
	})

	function("narrowF16AVX512", "func(dst *uint16, src *float32, n int)", "rounds n elements to F16, a multiple of 16.")
	eachSixteen(half, wide, func(dst, src Mem) {
		v := ZMM()
		VMOVUPS(src, v)
		VCVTPS2PH(U8(0), v, dst)
	})

	function("narrowBF16AVX512", "func(dst *uint16, src *float32, n int)", "rounds n elements to BF16, a multiple of 16.")
	bias, one, quiet := constant512(0x7fff), constant512(1), constant512(0x40)
	eachSixteen(half, wide, func(dst, src Mem) {
		v, upper, odd, unordered := ZMM(), ZMM(), ZMM(), K()
		VMOVUPS(src, v)
		VCMPPS(U8(3), v, v, unordered)
		VPSRLD(U8(16), v, upper)
		VPANDD(one, upper, odd)
		VPORD(quiet, upper, upper)
		VPADDD(bias, v, v)
		VPADDD(odd, v, v)
		VPSRLD(U8(16), v, v)
		VMOVDQA32(upper, unordered, v)
		VPMOVDW(v, dst)
	})
}

// constant512 is a vector of sixteen equal integers.
func constant512(bits uint32) VecVirtual {
	scalar, v := GP32(), ZMM()
	MOVL(U32(bits), scalar)
	VPBROADCASTD(scalar, v)
	return v
}

// eachSixteen emits body for all vectors of n elements.
func eachSixteen(dstBytes, srcBytes int, body func(dst, src Mem)) {
	p := pointers("dst", "src")
	n := Load(Param("n"), GP64())
	SHRQ(U8(4), n)
	for _, count := range []int{4, 1} {
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
