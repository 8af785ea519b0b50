package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

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
