package main

import (
	"fmt"

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

// quantiser emits the encoding and decoding of blocks of integers.
type quantiser struct {
	bits   int
	keep   bool
	steps  map[uint32]Mem // of counters
	common struct{ iota, half, multiplierA, multiplierB, sixteenth, lows, highs, order Mem }
	own    struct{ offset, integer, most, least Mem }

	scale, inverse, counter, second VecVirtual
}

// begin makes the constants for integers of so many bits.
func (q *quantiser) begin(bits int) {
	q.bits = bits
	if q.steps == nil {
		c := &q.common
		c.iota = words("iota", 0, 1, 2, 3, 4, 5, 6, 7)
		c.half = words("lowerHalves", 0xffff)
		c.multiplierA, c.multiplierB = words("multiplierA", 0x7feb352d), words("multiplierB", 0x846ca68b)
		c.sixteenth = words("shift16", 0x37800000) // 2^-16
		c.lows, c.highs = words("lowNibbles", 0x0f0f0f0f), words("highNibbles", 0xf0f0f0f0)
		c.order = words("order", 0, 4, 1, 5, 2, 6, 3, 7)
		q.steps = map[uint32]Mem{}
		for _, n := range []uint32{8, 16, 32, 40} {
			q.steps[n] = words(fmt.Sprintf("step%d", n), n)
		}
	}
	offset, integer := uint32(0x43000000), int32(128)
	if bits == 4 {
		offset, integer = 0x41000000, 8
	}
	name := func(s string) string { return fmt.Sprintf("%s%d", s, bits) }
	q.own.offset, q.own.integer = words(name("offset"), offset), words(name("integer"), uint32(integer))
	q.own.most, q.own.least = words(name("most"), uint32(integer-1)), words(name("least"), uint32(1-integer))
}

// emit emits the encoding of a block.
func (q *quantiser) emit(keep bool) {
	q.keep = keep
	name, doc := "quantise", fmt.Sprintf("rounds a block of n floats to integers of %d bits, by random numbers from a counter on", q.bits)
	pointed, names := "dst *byte, src *float32", []string{"dst", "src"}
	if keep {
		name, doc = "keep", doc+", and leaves in kept, which may be src, what was lost"
		pointed, names = "dst *byte, src, kept *float32", append(names, "kept")
	}
	length := "a multiple of 32"
	if q.bits == 4 {
		length = "128"
	}
	function(fmt.Sprintf("%s%dAVX2", name, q.bits), "func("+pointed+", n int, scale, inverse float32, counter, second uint32)", doc+"; n is "+length+".")
	p, n := pointers(names...), Load(Param("n"), GP64())
	SHRQ(U8(5), n)
	q.scale, q.inverse, q.counter, q.second = spread("scale"), spread("inverse"), spread("counter"), spread("second")
	VPADDD(q.common.iota, q.counter, q.counter)
	if q.bits == 4 {
		SHRQ(U8(1), n) // a group of each half at a time
	}
	Label("loop")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	packed := q.group(p[1:], 0)
	if q.bits == 4 {
		VPAND(q.common.lows, packed, packed)
		high := q.group(p[1:], 64)
		VPSLLW(U8(4), high, high)
		VPAND(q.common.highs, high, high)
		VPOR(high, packed, packed)
	}
	VMOVDQU(packed, at(p[0], 0))
	VPADDD(q.steps[16], q.counter, q.counter)
	ADDQ(U32(32), p[0])
	for _, r := range p[1:] {
		ADDQ(U32(4*vectorBytes), r)
	}
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("done")
	end()
}

// group rounds 32 elements from one on and returns their bytes.
func (q *quantiser) group(p []Register, first int) VecVirtual {
	integers := make([]VecVirtual, 4) // of elements 0, 8, 16 and 24
	for half := range 2 {
		h := q.hash(first/2 + 8*half)
		upper := YMM()
		VPSRLD(U8(16), h, upper)
		VPAND(q.common.half, h, h)
		for i, bits := range []VecVirtual{h, upper} {
			at := 2*i + half
			integers[at] = q.round(p, first+8*at, bits)
		}
	}
	VPACKSSDW(integers[1], integers[0], integers[0])
	VPACKSSDW(integers[3], integers[2], integers[2])
	VPACKSSWB(integers[2], integers[0], integers[0])
	order := YMM()
	VMOVDQU(q.common.order, order)
	VPERMD(integers[0], order, integers[0])
	return integers[0]
}

// hash is random.at of eight counters.
func (q *quantiser) hash(ahead int) VecVirtual {
	x, y := YMM(), YMM()
	if ahead == 0 {
		VMOVDQA(q.counter, x)
	} else {
		VPADDD(q.steps[uint32(ahead)], q.counter, x)
	}
	VPSRLD(U8(16), x, y)
	VPXOR(y, x, x)
	VPMULLD(q.common.multiplierA, x, x)
	VPSRLD(U8(15), x, y)
	VPXOR(y, x, x)
	VPXOR(q.second, x, x)
	VPMULLD(q.common.multiplierB, x, x)
	VPSRLD(U8(16), x, y)
	VPXOR(y, x, x)
	return x
}

// round is Blocks.round of eight elements, by 16 random bits each.
func (q *quantiser) round(p []Register, element int, bits VecVirtual) VecVirtual {
	x, t := YMM(), YMM()
	VCVTDQ2PS(bits, bits)
	VMULPS(q.common.sixteenth, bits, bits)
	VADDPS(q.own.offset, bits, bits)
	VMOVUPS(at(p[0], 4*element), x)
	VMULPS(x, q.inverse, t)
	VADDPS(bits, t, t)
	VCVTTPS2DQ(t, t)
	VPSUBD(q.own.integer, t, t)
	VPMAXSD(q.own.least, t, t)
	VPMINSD(q.own.most, t, t)
	if q.keep {
		f := YMM()
		VCVTDQ2PS(t, f)
		VMULPS(q.scale, f, f)
		VSUBPS(f, x, x)
		VMOVUPS(x, at(p[1], 4*element))
	}
	return t
}

// expand emits the decoding of a block.
func (q *quantiser) expand(add bool) {
	name, doc := "expand", "sets dst to n integers of %d bits times scale"
	if add {
		name, doc = "add", "adds n integers of %d bits times scale to dst"
	}
	length := "a multiple of 32"
	if q.bits == 4 {
		length = "128"
	}
	function(fmt.Sprintf("%s%dAVX2", name, q.bits), "func(dst *float32, src *byte, n int, scale float32)", fmt.Sprintf(doc, q.bits)+"; n is "+length+".")
	p, n := pointers("dst", "src"), Load(Param("n"), GP64())
	scale := spread("scale")
	store := func(integers VecVirtual, element int) {
		VCVTDQ2PS(integers, integers)
		VMULPS(scale, integers, integers)
		if add {
			VADDPS(at(p[0], 4*element), integers, integers)
		}
		VMOVUPS(integers, at(p[0], 4*element))
	}
	SHRQ(U8(5), n)
	step := 4 // vectors of a round
	if q.bits == 4 {
		SHRQ(U8(1), n)
	}
	Label("loop")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	for i := range step {
		v := YMM()
		VPMOVSXBD(at(p[1], 8*i), v)
		if q.bits == 4 {
			low := YMM()
			VPSLLD(U8(28), v, low)
			VPSRAD(U8(28), low, low)
			store(low, 8*i)
			VPSRAD(U8(4), v, v)
			store(v, 64+8*i)
			continue
		}
		store(v, 8*i)
	}
	ADDQ(U32(4*vectorBytes), p[0])
	ADDQ(U32(32), p[1])
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("done")
	end()
}
