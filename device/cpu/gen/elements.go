package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const vectorBytes = 32

// binary emits dst = a op b; op leaves its result in its first argument.
func binary(name, verb string, op func(a, b VecVirtual)) {
	function(name, "func(dst, a, b *float32, n int)", verb+" n elements of a and b, a multiple of 8, into dst.")
	p := pointers("dst", "a", "b")
	n := eighths()
	each("", n, 4, vectorBytes, p, func(offset int) {
		a, b := YMM(), YMM()
		VMOVUPS(at(p[1], offset), a)
		VMOVUPS(at(p[2], offset), b)
		op(a, b)
		VMOVUPS(a, at(p[0], offset))
	})
	end()
}

// eighths loads n and divides it by the elements of a vector.
func eighths() Register {
	n := Load(Param("n"), GP64())
	SHRQ(U8(3), n)
	return n
}

// keepNaN makes a maximum or minimum NaN where a is; the instruction gives b
// where b is.
func keepNaN(a, b VecVirtual, op func(ops ...Op)) {
	unordered := YMM()
	VCMPPS(U8(3), a, a, unordered)
	op(b, a, b)
	VBLENDVPS(unordered, a, b, a)
}

func scale() {
	function("scaleAVX2", "func(dst, a *float32, s float32, n int)", "sets dst = s * a for n elements, a multiple of 8.")
	p := pointers("dst", "a")
	s := YMM()
	address, err := Param("s").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(address.Addr, s)
	each("", eighths(), 4, vectorBytes, p, func(offset int) {
		v := YMM()
		VMULPS(at(p[1], offset), s, v)
		VMOVUPS(v, at(p[0], offset))
	})
	end()
}

func relu() {
	function("reluAVX2", "func(y, x *float32, n int)", "clamps n elements, a multiple of 8, keeping NaN and -0.")
	p := pointers("y", "x")
	z := zero()
	each("", eighths(), 4, vectorBytes, p, func(offset int) {
		v := YMM()
		VMAXPS(at(p[1], offset), z, v)
		VMOVUPS(v, at(p[0], offset))
	})
	end()
}

// mask clears g where y <= 0; NaN passes.
func mask(g VecVirtual, y Mem, z VecVirtual) {
	pass := YMM()
	VMOVUPS(y, pass)
	VCMPPS(U8(0x16), z, pass, pass) // not less or equal
	VANDPS(pass, g, g)
}

func reluBackward(name string, add bool) {
	function(name, "func(dx, dy, y *float32, n int)", "passes dy where y is not <= 0, for n elements, a multiple of 8.")
	p := pointers("dx", "dy", "y")
	z := zero()
	each("", eighths(), 4, vectorBytes, p, func(offset int) {
		g := YMM()
		VMOVUPS(at(p[1], offset), g)
		mask(g, at(p[2], offset), z)
		if add {
			VADDPS(at(p[0], offset), g, g)
		}
		VMOVUPS(g, at(p[0], offset))
	})
	end()
}

// sumSquares emits sums of blocks of 128: 16 sums by position modulo 16, added
// in the order of cpu.portableSumSquares.
func sumSquares() {
	function("sumSquaresAVX2", "func(out *float64, x *float32, blocks int)", "sums the squares of each of blocks > 0 blocks of 128.")
	out, x := Load(Param("out"), GP64()), Load(Param("x"), GP64())
	n := Load(Param("blocks"), GP64())
	Label("loop")
	sums := vectors(4)
	for _, s := range sums {
		VXORPD(s, s, s)
	}
	for i := range 32 {
		v := YMM()
		VCVTPS2PD(at(x, 16*i), v)
		VFMADD231PD(v, v, sums[i%4])
	}
	VADDPD(sums[1], sums[0], sums[0])
	VADDPD(sums[3], sums[2], sums[2])
	VADDPD(sums[2], sums[0], sums[0])
	high := XMM()
	VEXTRACTF128(U8(1), sums[0], high)
	VADDPD(high, sums[0].AsX(), high)
	low := XMM()
	VUNPCKHPD(high, high, low)
	VADDSD(low, high, high)
	VMOVSD(high, at(out, 0))
	ADDQ(U32(8), out)
	ADDQ(U32(512), x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	end()
}
