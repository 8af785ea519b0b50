package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// floatForm is a type of floats that package wire/pack codes. Its format is there.
type floatForm struct {
	name  string
	bytes int // of a value
	extra int // bits beside the exponent in the highest byte
}

const (
	packedBlock  = 256
	packedGroup  = 64
	packedGroups = packedBlock / packedGroup
	packedHead   = 2
	packedStarts = 6
)

// floats512 emits the loops of package wire/pack.
func floats512() {
	for _, f := range []floatForm{{"F32", 4, 0}, {"F16", 2, 3}, {"BF16", 2, 0}} {
		f.encode()
		f.decode()
	}
}

func (f floatForm) low() int { return f.bytes - 1 }

// codes are the bytes of a group's bits, before the escapes.
func (f floatForm) codes() int { return (f.extra + 2) * packedGroup / 8 }

// inVector is how many values are turned at once.
func (f floatForm) inVector() int { return 64 / f.bytes }

// order is the table that parts the bytes of values, the highest ones behind the
// others, or joins them.
func (f floatForm) order(parts bool) VecVirtual {
	var table [64]byte
	for i := range f.inVector() {
		for b := range f.bytes {
			apart := i*f.low() + b
			if b == f.low() {
				apart = f.inVector()*f.low() + i
			}
			if together := i*f.bytes + b; parts {
				table[apart] = byte(together)
			} else {
				table[together] = byte(apart)
			}
		}
	}
	name := "joined"
	if parts {
		name = "parted"
	}
	m := GLOBL(name+f.name, RODATA|NOPTR)
	for i, b := range table {
		DATA(i, U8(b))
	}
	v := ZMM()
	VMOVDQU64(m, v)
	return v
}

// bytes512 is a vector of equal bytes.
func bytes512(b byte) VecVirtual { return constant512(uint32(b) * 0x01010101) }

func loaded(m Mem) VecVirtual {
	v := ZMM()
	VMOVDQU64(m, v)
	return v
}

// encode emits the making of a coded block.
func (f floatForm) encode() {
	function("encode"+f.name+"AVX512", "func(dst, src, exponents, escapes *byte) int",
		"makes a coded block of 256 values of "+f.name+" and returns its length; the last two are memory of 256 and 320 bytes.")
	p := pointers("dst", "src", "exponents", "escapes")
	dst, exponents, escapes := p[0], p[2], p[3]
	f.split(p)
	at, start := GP64(), packedHead+packedBlock*f.low()
	LEAQ(Mem{Base: dst, Disp: start}, at)
	groups := make([]VecVirtual, packedGroups)
	for g := range groups {
		groups[g] = loaded(Mem{Base: exponents, Disp: g * packedGroup})
	}
	if f.extra > 0 {
		f.takeExtra(groups, at)
	}
	most := largestByte(groups)
	MOVB(most.As8(), Mem{Base: dst, Disp: 1})
	all := ZMM()
	VPBROADCASTB(most, all)
	for _, g := range groups {
		VPSUBB(g, all, g) // the distances
	}
	w := firstOf(groups)
	kind := GP32()
	LEAL(Mem{Base: w.As64(), Disp: 2}, kind)
	MOVB(kind.As8(), Mem{Base: dst})
	first := ZMM()
	VPBROADCASTB(w, first)
	count := f.putCodes(groups, first, at, escapes)
	putEscapes(count, at, escapes)
	SUBQ(dst, at)
	Store(at, ReturnIndex(0))
	end()
}

// split stores the lower bytes of values behind the head, and the highest apart.
// What a store writes beyond its bytes the next one replaces.
func (f floatForm) split(p []Register) {
	order := f.order(true)
	for i := range packedBlock / f.inVector() {
		v := loaded(Mem{Base: p[1], Disp: 64 * i})
		n := f.inVector()
		low := Mem{Base: p[0], Disp: packedHead + n*f.low()*i}
		if f.bytes == 4 {
			VPROLD(U8(1), v, v)
			VPERMB(v, order, v)
			VMOVDQU64(v, low)
			VEXTRACTI32X4(U8(3), v, Mem{Base: p[2], Disp: n * i})
			continue
		}
		VPSHLDW(U8(1), v, v, v)
		VPERMB(v, order, v)
		VMOVDQU(v.AsY(), low)
		VEXTRACTI64X4(U8(1), v, Mem{Base: p[2], Disp: n * i})
	}
}

// takeExtra stores the bits beside the exponents, at the place of each group, and
// leaves the exponents.
func (f floatForm) takeExtra(groups []VecVirtual, at Register) {
	keep := bytes512(0xff >> f.extra)
	for bit := range f.extra {
		which := bytes512(1 << bit)
		for g, v := range groups {
			storePlane(v, which, Mem{Base: at, Disp: g*f.codes() + 8*bit})
		}
	}
	for _, v := range groups {
		VPSRLW(U8(f.extra), v, v)
		VPANDQ(keep, v, v)
	}
}

// storePlane stores a bit of 64 bytes and returns the plane.
func storePlane(v, bit VecVirtual, to Mem) Register {
	k, plane := K(), GP64()
	VPTESTMB(bit, v, k)
	KMOVQ(k, plane)
	MOVQ(plane, to)
	return plane
}

// largestByte is the largest of all.
func largestByte(groups []VecVirtual) GPVirtual {
	v, half := ZMM(), YMM()
	VPMAXUB(groups[1], groups[0], v)
	for _, g := range groups[2:] {
		VPMAXUB(g, v, v)
	}
	VEXTRACTI64X4(U8(1), v, half)
	VPMAXUB(v.AsY(), half, half)
	x, y := half.AsX(), XMM()
	VEXTRACTI128(U8(1), half, y)
	VPMAXUB(y, x, x)
	return largestOf16(x, y)
}

// firstOf is the distance from which three have the most values.
func firstOf(groups []VecVirtual) GPVirtual {
	distance, one := ZMM(), bytes512(1)
	VPXORQ(distance, distance, distance)
	return mostOfThree(func(int) GPVirtual {
		count := GP64()
		for g, v := range groups {
			k, plane := K(), GP64()
			VPCMPEQB(distance, v, k)
			KMOVQ(k, plane)
			POPCNTQ(plane, plane)
			if g == 0 {
				MOVQ(plane, count)
			} else {
				ADDQ(plane, count)
			}
		}
		VPADDB(one, distance, distance)
		return count
	})
}

// mostOfThree is the first of the places from which three counts are the most.
func mostOfThree(countAt func(t int) GPVirtual) GPVirtual {
	first, best := GP32(), GP64()
	XORL(first, first)
	var counts []GPVirtual
	for t := range packedStarts + 2 {
		counts = append(counts, countAt(t))
		if t < 2 {
			continue
		}
		sum := GP64()
		MOVQ(counts[t-2], sum)
		ADDQ(counts[t-1], sum)
		ADDQ(counts[t], sum)
		if t == 2 {
			MOVQ(sum, best)
			continue
		}
		here := GP32()
		MOVL(U32(t-2), here)
		CMPQ(sum, best)
		CMOVLGT(here, first)
		CMOVQGT(sum, best)
	}
	return first
}

// putCodes stores the codes and collects the escapes, which it counts; at moves
// behind the codes.
func (f floatForm) putCodes(groups []VecVirtual, first VecVirtual, at, escapes Register) GPVirtual {
	one, two, three := bytes512(1), bytes512(2), bytes512(3)
	count := GP64()
	XORQ(count, count)
	for g, c := range groups {
		code, taken, above := ZMM(), K(), K()
		VPSUBB(first, c, code)
		VPMINUB(three, code, code)
		plane0 := storePlane(code, one, Mem{Base: at, Disp: g*f.codes() + 8*f.extra})
		plane1 := storePlane(code, two, Mem{Base: at, Disp: g*f.codes() + 8*f.extra + 8})
		VPCMPUB(U8(5), first, c, above)
		VPSUBB(three, c, above, c)
		ANDQ(plane0, plane1)
		KMOVQ(plane1, taken)
		VPCOMPRESSB_Z(c, taken, c)
		VMOVDQU64(c, Mem{Base: escapes, Index: count, Scale: 1})
		POPCNTQ(plane1, plane1)
		ADDQ(plane1, count)
	}
	ADDQ(U32(packedGroups*f.codes()), at)
	return count
}

// putEscapes stores count escapes; at moves behind them.
func putEscapes(count GPVirtual, at, escapes Register) {
	zero, seven := ZMM(), bytes512(7)
	bits := []VecVirtual{bytes512(1), bytes512(2), bytes512(4)}
	VPXORQ(zero, zero, zero)
	VMOVDQU64(zero, Mem{Base: escapes, Index: count, Scale: 1})
	Label("escapes")
	CMPQ(count, U32(0))
	JLE(LabelRef("escaped"))
	v, short, long, length, plane := loaded(Mem{Base: escapes}), ZMM(), K(), GP64(), GP64()
	VPMINUB(seven, v, short)
	groupBytes(count, length)
	for _, bit := range bits {
		storePlane(short, bit, Mem{Base: at})
		ADDQ(length, at)
	}
	VPCMPEQB(seven, short, long)
	VPCOMPRESSB_Z(v, long, v)
	VMOVDQU64(v, Mem{Base: at})
	KMOVQ(long, plane)
	POPCNTQ(plane, plane)
	ADDQ(plane, at)
	ADDQ(U32(packedGroup), escapes)
	SUBQ(U32(packedGroup), count)
	JMP(LabelRef("escapes"))
	Label("escaped")
}

// groupBytes sets length to the bytes of a bit of each of what is left, at most a
// group.
func groupBytes(left GPVirtual, length GPVirtual) {
	whole := GP64()
	LEAQ(Mem{Base: left, Disp: 7}, length)
	SHRQ(U8(3), length)
	MOVQ(U64(packedGroup/8), whole)
	CMPQ(length, whole)
	CMOVQGT(whole, length)
}
