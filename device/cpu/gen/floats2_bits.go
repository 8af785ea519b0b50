package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// plane2 is a bit of 32 bytes.
func plane2(v VecVirtual, bit int) GPVirtual {
	shifted, plane := YMM(), GP32()
	VPSLLW(U8(7-bit), v, shifted)
	VPMOVMSKB(shifted, plane)
	return plane
}

// planesOf are the lowest bits of two times 32 bytes.
func planesOf(bits int, half func(int) VecVirtual) (planes []GPVirtual) {
	low, high := half(0), half(1)
	for bit := range bits {
		plane, upper := plane2(low, bit).As64().(GPVirtual), plane2(high, bit).As64().(GPVirtual)
		SHLQ(U8(32), upper)
		ORQ(upper, plane)
		planes = append(planes, plane)
	}
	return planes
}

// appendBits appends v to the bits at an offset of space, of which there are count.
func appendBits(v, count, space Register, offset int) {
	word, low := GP64(), GP64()
	MOVQ(count, word)
	SHRQ(U8(6), word)
	SHLXQ(count, v, low)
	ORQ(low, Mem{Base: space, Index: word, Scale: 8, Disp: offset})
	SHRQ(U8(1), v)
	MOVQ(count, low)
	NOTQ(low)
	SHRXQ(low, v, v)
	MOVQ(v, Mem{Base: space, Index: word, Scale: 8, Disp: offset + 8})
}

// eachBit emits body for every bit that is set, which it clears.
func eachBit(label string, set Register, body func(at Register)) {
	at := GP64()
	Label(label)
	TESTQ(set, set)
	JZ(LabelRef(label + "done"))
	TZCNTQ(set, at)
	body(at)
	BLSRQ(set, set)
	JMP(LabelRef(label))
	Label(label + "done")
}

// copyGroup copies 64 bytes, of which only some count.
func copyGroup(to, from Register) {
	for i := range 2 {
		v := YMM()
		VMOVDQU(Mem{Base: from, Disp: 32 * i}, v)
		VMOVDQU(v, Mem{Base: to, Disp: 32 * i})
	}
}
