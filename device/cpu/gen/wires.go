package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// wires emits the loops of package wire.
func wires() {
	halves()
	binary("addAVX2", "adds", func(a, b VecVirtual) { VADDPS(b, a, a) })
	products()
	momenta("momentumAVX2", false)
	momenta("nesterovAVX2", true)
	largest()
	reach()
	q := quantiser{}
	for _, bits := range []int{8, 4} {
		q.begin(bits)
		for _, keep := range []bool{false, true} {
			q.emit(keep)
		}
		for _, add := range []bool{false, true} {
			q.expand(add)
		}
	}
}

// words are eight numbers in memory that stay the same.
func words(name string, values ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(values[i%len(values)]))
	}
	return m
}

// spread loads a parameter of 32 bits into all lanes.
func spread(name string) VecVirtual {
	v := YMM()
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(b.Addr, v)
	return v
}

// products emits what low-rank factors need. Products are rounded before they are
// added, as in the plain loops.
func products() {
	function("dotAVX2", "func(sums, a, b *float32, n int)", "sets 32 sums to those of the products of a and b at every 32nd place; n is a multiple of 32.")
	p, n := pointers("a", "b"), Load(Param("n"), GP64())
	SHRQ(U8(5), n)
	sums := []VecVirtual{zero(), zero(), zero(), zero()}
	each("", n, 1, 4*vectorBytes, p, func(int) {
		for i, s := range sums {
			v := YMM()
			VMOVUPS(at(p[0], i*vectorBytes), v)
			VMULPS(at(p[1], i*vectorBytes), v, v)
			VADDPS(v, s, s)
		}
	})
	out := Load(Param("sums"), GP64())
	for i, s := range sums {
		VMOVUPS(s, at(out, i*vectorBytes))
	}
	end()

	function("addScaledAVX2", "func(dst, src *float32, n int, s float32)", "adds s times n floats, a multiple of 8, to dst.")
	p, n = pointers("dst", "src"), eighths()
	s := spread("s")
	each("", n, 4, vectorBytes, p, func(offset int) {
		v := YMM()
		VMULPS(at(p[1], offset), s, v)
		VADDPS(at(p[0], offset), v, v)
		VMOVUPS(v, at(p[0], offset))
	})
	end()
}

// momenta emits the momentum that top-k adds up.
func momenta(name string, nesterov bool) {
	doc := "sets velocity = momentum * velocity + x and adds "
	if nesterov {
		doc += "x + momentum * velocity"
	} else {
		doc += "velocity"
	}
	function(name, "func(kept, velocity, x *float32, n int, momentum float32)", doc+" to kept, for n floats, a multiple of 8.")
	p, n := pointers("kept", "velocity", "x"), eighths()
	m := spread("momentum")
	each("", n, 2, vectorBytes, p, func(offset int) {
		x, v := YMM(), YMM()
		VMOVUPS(at(p[2], offset), x)
		VMULPS(at(p[1], offset), m, v)
		VADDPS(x, v, v)
		VMOVUPS(v, at(p[1], offset))
		if nesterov {
			VMULPS(v, m, v)
			VADDPS(x, v, v)
		}
		VADDPS(at(p[0], offset), v, v)
		VMOVUPS(v, at(p[0], offset))
	})
	end()
}

// magnitude is all bits but the sign.
const magnitude = 0x7fffffff

func largest() {
	function("largestAVX2", "func(src *float32, n int) uint32", "returns the bits of the largest magnitude of n floats, a multiple of 32.")
	p, n := pointers("src"), Load(Param("n"), GP64())
	SHRQ(U8(5), n)
	mask, most := constant(magnitude), []VecVirtual{zero(), zero()}
	each("", n, 1, 4*vectorBytes, p, func(int) {
		for i := range 4 {
			v := YMM()
			VPAND(at(p[0], i*vectorBytes), mask, v)
			VPMAXUD(v, most[i%2], most[i%2])
		}
	})
	VPMAXUD(most[1], most[0], most[0])
	x, y := XMM(), most[0].AsX()
	VEXTRACTI128(U8(1), most[0], x)
	VPMAXUD(x, y, y)
	for _, swap := range []uint8{0x4e, 0xb1} {
		VPSHUFD(U8(swap), y, x)
		VPMAXUD(x, y, y)
	}
	out := GP32()
	VMOVD(y, out)
	Store(out, ReturnIndex(0))
	end()
}

// reachAhead is how many bytes ahead memory is asked for: over the end of a page,
// where the processor itself stops.
const reachAhead = 2048

// reach emits the search for values of a magnitude.
func reach() {
	function("reachAVX2", "func(marks *uint32, src *float32, n int, below uint32)",
		"sets a bit of marks for each of n floats, a multiple of 32, whose magnitude's bits are above below, a number of 31 bits.")
	p, n := pointers("marks", "src"), Load(Param("n"), GP64())
	SHRQ(U8(5), n)
	mask, below := constant(magnitude), spread("below")
	Label("loop")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	for line := range 2 {
		PREFETCHT0(at(p[1], reachAhead+64*line))
	}
	sum := GP32()
	for i := range 4 {
		v, bits := YMM(), GP32()
		VPAND(at(p[1], i*vectorBytes), mask, v)
		VPCMPGTD(below, v, v)
		VMOVMSKPS(v, bits)
		if i == 0 {
			MOVL(bits, sum)
			continue
		}
		SHLL(U8(8*i), bits)
		ORL(bits, sum)
	}
	MOVL(sum, at(p[0], 0))
	ADDQ(U32(4), p[0])
	ADDQ(U32(4*vectorBytes), p[1])
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("done")
	end()
}
