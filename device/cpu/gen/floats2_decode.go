package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// decode2 is decode.
func (f floatForm) decode2() {
	function("decode"+f.name+"AVX2", "func(dst, src, space *byte) int",
		"reads a coded block of 256 values of "+f.name+" and returns its length; space is a scratch.")
	p := pointers("src", "space")
	src, space := p[0], p[1]
	codes, at := GP64(), GP64()
	LEAQ(Mem{Base: src, Disp: packedHead + packedBlock*f.low()}, codes)
	LEAQ(Mem{Base: codes, Disp: packedGroups * f.codes()}, at)
	count := f.escapes(codes)
	takeEscapes2(count, at, space)
	SUBQ(src, at)
	Store(at, ReturnIndex(0))
	d := f.distances2(src, codes, space)
	XORQ(count, count)
	for g := range packedGroups {
		d.group(g, count)
	}
	f.exponents2(codes, space, d)
	f.join2([]Register{Load(Param("dst"), GP64()), Load(Param("src"), GP64()), space})
	end()
}

// takeEscapes2 leaves in the scratch the bits of count escapes, and the bytes behind
// them; at moves on.
func takeEscapes2(count GPVirtual, at, space Register) {
	word, bytes, length, valid, long := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(space, word)
	LEAQ(Mem{Base: space, Disp: floatsEscapes}, bytes)
	Label("escapes")
	CMPQ(count, U32(0))
	JLE(LabelRef("escaped"))
	groupBytes(count, length)
	MOVQ(U64(packedGroup), valid) // of the count BZHI sees a byte, and it may be 256
	CMPQ(count, valid)
	CMOVQLT(count, valid)
	MOVQ(I64(-1), long)
	BZHIQ(valid, long, valid)
	for i := range 3 {
		plane := GP64()
		MOVQ(Mem{Base: at}, plane)
		ADDQ(length, at)
		ANDQ(valid, plane)
		MOVQ(plane, Mem{Base: word, Disp: floatsBits + i*floatsWords})
		ANDQ(plane, long)
	}
	POPCNTQ(long, long)
	copyGroup(bytes, at)
	ADDQ(long, at)
	ADDQ(long, bytes)
	ADDQ(U32(8), word)
	SUBQ(U32(packedGroup), count)
	JMP(LabelRef("escapes"))
	Label("escaped")
}

// distances2 is what the distances of all groups need.
type distances2 struct {
	f            floatForm
	codes, space Register
	bytes, w     GPVirtual
	first        VecVirtual
	spread, each VecVirtual // a bit of 32 in each byte
	bits         [3]VecVirtual
	three        VecVirtual
}

func (f floatForm) distances2(src, codes, space Register) *distances2 {
	d := &distances2{f: f, codes: codes, space: space, bytes: GP64(), w: GP32(), first: YMM(), three: bytes256(3)}
	LEAQ(Mem{Base: space, Disp: floatsEscapes}, d.bytes)
	MOVBLZX(Mem{Base: src}, d.w)
	SUBL(U8(2), d.w)
	VMOVD(d.w, d.first.AsX())
	VPBROADCASTB(d.first.AsX(), d.first)
	m := GLOBL("spread"+f.name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(i/8))
	}
	d.spread, d.each = YMM(), YMM()
	VMOVDQU(m, d.spread)
	d.each = table256("each"+f.name, [16]byte{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128})
	for i := range d.bits {
		d.bits[i] = bytes256(1 << i)
	}
	return d
}

// mask is all bits of those bytes whose bit is set in the lower half of plane.
func (d *distances2) mask(plane Op) VecVirtual {
	v := YMM()
	if r, ok := plane.(GP); ok {
		VMOVD(r.As32(), v.AsX())
		VPBROADCASTD(v.AsX(), v)
	} else {
		VPBROADCASTD(plane, v)
	}
	VPSHUFB(d.spread, v, v)
	VPAND(d.each, v, v)
	VPCMPEQB(d.each, v, v)
	return v
}

// bytesOf is the number that the bits of a byte make.
func (d *distances2) bytesOf(planes []Op) VecVirtual {
	sum := YMM()
	for i, plane := range planes {
		v := d.mask(plane)
		VPAND(d.bits[i], v, v)
		if i == 0 {
			VMOVDQA(v, sum)
		} else {
			VPOR(v, sum, sum)
		}
	}
	return sum
}

// group leaves the distances of a group in the scratch; count moves on in the escapes.
func (d *distances2) group(g int, count GPVirtual) {
	at := func(i int) Mem { return Mem{Base: d.codes, Disp: g*d.f.codes() + 8*(d.f.extra+i)} }
	taken, long := GP64(), GP64()
	MOVQ(at(0), taken)
	ANDQ(at(1), taken)
	MOVQ(taken, long)
	var short [3]Op
	for i := range short {
		v := takeBits(count, d.space, floatsBits+i*floatsWords)
		PDEPQ(taken, v, v)
		ANDQ(v, long)
		short[i] = v
	}
	for half := range 2 {
		code, escape, above := d.bytesOf([]Op{at(0).Offset(4 * half), at(1).Offset(4 * half)}), d.bytesOf(short[:]), YMM()
		VPADDB(d.first, code, code)
		VPMAXUB(d.first, escape, above)
		VPCMPEQB(escape, above, above)
		VPAND(d.three, above, above)
		VPADDB(above, escape, escape)
		VPBLENDVB(d.mask(taken), escape, code, code)
		VMOVDQU(code, Mem{Base: d.space, Disp: packedGroup*g + 32*half})
		if half == 0 {
			for _, v := range short {
				SHRQ(U8(32), v)
			}
			whole := GP64()
			MOVQ(taken, whole)
			POPCNTQ(whole, whole)
			ADDQ(whole, count)
			SHRQ(U8(32), taken)
		}
	}
	eachBit("raw"+strconv.Itoa(g), long, func(at Register) {
		b, other := GP32(), GP32()
		MOVBLZX(Mem{Base: d.bytes}, b)
		INCQ(d.bytes)
		LEAL(Mem{Base: b.As64(), Disp: 3}, other)
		CMPL(b, d.w)
		CMOVLCC(other, b) // of those from w on
		MOVB(b.As8(), Mem{Base: d.space, Index: at, Scale: 1, Disp: packedGroup * g})
	})
}

// takeBits is the 64 bits from count on.
func takeBits(count, space Register, offset int) GPVirtual {
	word, low, high := GP64(), GP64(), GP64()
	MOVQ(count, word)
	SHRQ(U8(6), word)
	MOVQ(Mem{Base: space, Index: word, Scale: 8, Disp: offset + 8}, high)
	SHRXQ(count, Mem{Base: space, Index: word, Scale: 8, Disp: offset}, low)
	SHLQ(U8(1), high)
	MOVQ(count, word)
	NOTQ(word)
	SHLXQ(word, high, high)
	ORQ(high, low)
	return low
}

// exponents2 turns distances into the highest bytes of values.
func (f floatForm) exponents2(codes, space Register, d *distances2) {
	b, most := GP32(), YMM()
	MOVBLZX(Mem{Base: Load(Param("src"), GP64()), Disp: 1}, b)
	VMOVD(b, most.AsX())
	VPBROADCASTB(most.AsX(), most)
	keep := VecVirtual(nil)
	if f.extra > 0 {
		keep = bytes256(0xff << f.extra & 0xff)
	}
	for j := range packedBlock / 32 {
		v := YMM()
		VPSUBB(Mem{Base: space, Disp: 32 * j}, most, v)
		if f.extra > 0 {
			VPSLLW(U8(f.extra), v, v)
			VPAND(keep, v, v)
			var planes []Op
			for i := range f.extra {
				planes = append(planes, Mem{Base: codes, Disp: j/2*f.codes() + 8*i + j%2*4})
			}
			VPOR(d.bytesOf(planes), v, v)
		}
		VMOVDQU(v, Mem{Base: space, Disp: 32 * j})
	}
}

// join2 is join.
func (f floatForm) join2(p []Register) {
	order := f.order2(false)
	n := 32 / f.bytes
	for i := range packedBlock / n {
		v := YMM()
		low, high := packedHead+n*f.low()*i, Mem{Base: p[2], Disp: n * i}
		VBROADCASTI128(Mem{Base: p[1], Disp: low}, v) // all of v is new, which the generator is to see
		if f.bytes == 4 {
			top := YMM()
			VINSERTI128(U8(1), Mem{Base: p[1], Disp: low + 12}, v, v)
			VPSHUFB(order, v, v)
			VPMOVZXBD(high, top)
			VPSLLD(U8(24), top, top)
			VPOR(top, v, v)
		} else {
			VINSERTI128(U8(1), high, v, v)
			VPERMQ(U8(0xd8), v, v)
			VPSHUFB(order, v, v)
		}
		f.turn2(v, true)
		VMOVDQU(v, Mem{Base: p[0], Disp: 32 * i})
	}
}
