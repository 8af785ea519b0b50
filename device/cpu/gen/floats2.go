package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// What package pack's scratch has where.
const (
	floatsEscapes = packedBlock
	floatsBits    = floatsEscapes + packedBlock + packedGroup
	floatsWords   = 8 * 6 // bytes that a bit of all escapes takes, and a word to write on
)

// floats2 emits the loops of package wire/pack for processors without bytes in masks:
// bits of bytes come and go as numbers, in which escapes are picked with PEXT and PDEP.
func floats2() {
	for _, f := range []floatForm{{"F32", 4, 0}, {"F16", 2, 3}, {"BF16", 2, 0}} {
		f.encode2()
		f.decode2()
	}
}

// bytes256 is a vector of equal bytes.
func bytes256(b byte) VecVirtual { return words256(uint32(b) * 0x01010101) }

func words256(bits uint32) VecVirtual {
	scalar, v := GP32(), YMM()
	MOVL(U32(bits), scalar)
	VMOVD(scalar, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// table256 is 16 bytes, twice.
func table256(name string, values [16]byte) VecVirtual {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(values[i%16]))
	}
	v := YMM()
	VMOVDQU(m, v)
	return v
}

// order2 is order for a lane of 16 bytes.
func (f floatForm) order2(parts bool) VecVirtual {
	var table [16]byte
	n := 16 / f.bytes
	for i := range n {
		for b := range f.bytes {
			apart := i*f.low() + b
			if b == f.low() {
				apart = n*f.low() + i
			}
			together := i*f.bytes + b
			switch {
			case parts:
				table[apart] = byte(together)
			case f.bytes == 4 && b == f.low():
				table[together] = 0x80 // nothing: these bytes come by another way
			default:
				table[together] = byte(apart)
			}
		}
	}
	name := "joinedLanes"
	if parts {
		name = "partedLanes"
	}
	return table256(name+f.name, table)
}

// turn2 turns values by a bit, to the left or back.
func (f floatForm) turn2(v VecVirtual, back bool) {
	left, right := uint8(1), uint8(8*f.bytes-1)
	if back {
		left, right = right, left
	}
	other := YMM()
	if f.bytes == 4 {
		VPSLLD(U8(left), v, other)
		VPSRLD(U8(right), v, v)
	} else {
		VPSLLW(U8(left), v, other)
		VPSRLW(U8(right), v, v)
	}
	VPOR(other, v, v)
}

// encode2 is encode.
func (f floatForm) encode2() {
	function("encode"+f.name+"AVX2", "func(dst, src, space *byte) int",
		"makes a coded block of 256 values of "+f.name+" and returns its length; space is a scratch.")
	p := pointers("dst", "src", "space")
	dst, space := p[0], p[2]
	f.split2(p)
	at := GP64()
	LEAQ(Mem{Base: dst, Disp: packedHead + packedBlock*f.low()}, at)
	parts := make([]VecVirtual, packedBlock/32)
	for j := range parts {
		parts[j] = YMM()
		VMOVDQU(Mem{Base: space, Disp: 32 * j}, parts[j])
	}
	if f.extra > 0 {
		f.takeExtra2(parts, at)
	}
	most, all := largestByte2(parts), YMM()
	MOVB(most.As8(), Mem{Base: dst, Disp: 1})
	VMOVD(most, all.AsX())
	VPBROADCASTB(all.AsX(), all)
	for _, v := range parts {
		VPSUBB(v, all, v) // the distances
	}
	w := firstOf2(parts)
	kind, first := GP32(), YMM()
	LEAL(Mem{Base: w.As64(), Disp: 2}, kind)
	MOVB(kind.As8(), Mem{Base: dst})
	VMOVD(w, first.AsX())
	VPBROADCASTB(first.AsX(), first)
	count := f.putCodes2(parts, first, at, space)
	putEscapes2(count, at, space)
	SUBQ(dst, at)
	Store(at, ReturnIndex(0))
	end()
}

// split2 is split, in the scratch.
func (f floatForm) split2(p []Register) {
	order := f.order2(true)
	n := 32 / f.bytes
	for i := range packedBlock / n {
		v, x := YMM(), XMM()
		VMOVDQU(Mem{Base: p[1], Disp: 32 * i}, v)
		f.turn2(v, false)
		VPSHUFB(order, v, v)
		low, high := packedHead+n*f.low()*i, n*i
		if f.bytes == 4 {
			VEXTRACTI128(U8(1), v, x)
			VMOVDQU(v.AsX(), Mem{Base: p[0], Disp: low})
			VMOVDQU(x, Mem{Base: p[0], Disp: low + 12})
			VPEXTRD(U8(3), v.AsX(), Mem{Base: p[2], Disp: high})
			VPEXTRD(U8(3), x, Mem{Base: p[2], Disp: high + 4})
			continue
		}
		VPERMQ(U8(0xd8), v, v)
		VEXTRACTI128(U8(1), v, x)
		VMOVDQU(v.AsX(), Mem{Base: p[0], Disp: low})
		VMOVDQU(x, Mem{Base: p[2], Disp: high})
	}
}

func (f floatForm) takeExtra2(parts []VecVirtual, at Register) {
	for bit := range f.extra {
		for j, v := range parts {
			MOVL(plane2(v, bit), Mem{Base: at, Disp: j/2*f.codes() + 8*bit + j%2*4})
		}
	}
	keep := bytes256(0xff >> f.extra)
	for _, v := range parts {
		VPSRLW(U8(f.extra), v, v)
		VPAND(keep, v, v)
	}
}

func largestByte2(parts []VecVirtual) GPVirtual {
	v, x := YMM(), XMM()
	VPMAXUB(parts[1], parts[0], v)
	for _, p := range parts[2:] {
		VPMAXUB(p, v, v)
	}
	VEXTRACTI128(U8(1), v, x)
	VPMAXUB(v.AsX(), x, x)
	return largestOf16(x, XMM())
}

// largestOf16 is the largest byte of x; of both nothing is left.
func largestOf16(x, y Register) GPVirtual {
	ones, out := XMM(), GP32()
	VPCMPEQD(ones, ones, ones)
	VPXOR(ones, x, x) // of what is left the smallest is looked for
	VPSRLW(U8(8), x, y)
	VPMINUB(y, x, x)
	VPHMINPOSUW(x, x)
	VMOVD(x, out)
	NOTL(out)
	MOVBLZX(out.As8(), out)
	return out
}

func firstOf2(parts []VecVirtual) GPVirtual {
	distance, zero, one := YMM(), YMM(), bytes256(1)
	VPXOR(distance, distance, distance)
	VPXOR(zero, zero, zero)
	return mostOfThree(func(int) GPVirtual {
		sum, same, x, count := YMM(), YMM(), XMM(), GP64()
		for j, v := range parts {
			if j == 0 {
				VPCMPEQB(distance, v, sum) // -1 for each
				continue
			}
			VPCMPEQB(distance, v, same)
			VPADDB(same, sum, sum)
		}
		VPSUBB(sum, zero, sum)
		VPSADBW(zero, sum, sum)
		VEXTRACTI128(U8(1), sum, x)
		VPADDQ(sum.AsX(), x, x)
		VPSHUFD(U8(0x4e), x, sum.AsX())
		VPADDQ(sum.AsX(), x, x)
		VMOVQ(x, count)
		VPADDB(one, distance, distance)
		return count
	})
}

// putCodes2 stores codes and leaves distances in the scratch, bits of the escapes
// and those that need bytes behind them.
func (f floatForm) putCodes2(parts []VecVirtual, first VecVirtual, at, space Register) GPVirtual {
	three, seven := bytes256(3), bytes256(7)
	count, bytes := GP64(), GP64()
	XORQ(count, count)
	LEAQ(Mem{Base: space, Disp: floatsEscapes}, bytes)
	for i := range 3 {
		MOVQ(U32(0), Mem{Base: space, Disp: floatsBits + i*floatsWords})
	}
	for g := range packedGroups {
		halves := parts[2*g : 2*g+2]
		planes := planesOf(2, func(half int) VecVirtual {
			v := YMM()
			VPSUBB(first, halves[half], v)
			VPMINUB(three, v, v)
			return v
		})
		planes = append(planes, planesOf(3, func(half int) VecVirtual {
			c, v := halves[half], YMM()
			VPMAXUB(first, c, v)
			VPCMPEQB(c, v, v)
			VPAND(three, v, v)
			VPSUBB(v, c, c)
			VMOVDQU(c, Mem{Base: space, Disp: packedGroup*g + 32*half})
			VPMINUB(seven, c, v)
			return v
		})...)
		MOVQ(planes[0], Mem{Base: at, Disp: g*f.codes() + 8*f.extra})
		MOVQ(planes[1], Mem{Base: at, Disp: g*f.codes() + 8*f.extra + 8})
		taken, long := planes[1], GP64()
		ANDQ(planes[0], taken)
		MOVQ(taken, long)
		for i := range 3 {
			ANDQ(planes[2+i], long)
			PEXTQ(taken, planes[2+i], planes[2+i])
			appendBits(planes[2+i], count, space, floatsBits+i*floatsWords)
		}
		POPCNTQ(taken, taken)
		ADDQ(taken, count)
		eachBit("raw"+strconv.Itoa(g), long, func(at Register) {
			b := GP32()
			MOVBLZX(Mem{Base: space, Index: at, Scale: 1, Disp: packedGroup * g}, b)
			MOVB(b.As8(), Mem{Base: bytes})
			INCQ(bytes)
		})
	}
	ADDQ(U32(packedGroups*f.codes()), at)
	return count
}

// putEscapes2 is putEscapes.
func putEscapes2(count GPVirtual, at, space Register) {
	word, bytes, length, long := GP64(), GP64(), GP64(), GP64()
	MOVQ(space, word)
	LEAQ(Mem{Base: space, Disp: floatsEscapes}, bytes)
	Label("escapes")
	CMPQ(count, U32(0))
	JLE(LabelRef("escaped"))
	groupBytes(count, length)
	MOVQ(I64(-1), long)
	for i := range 3 {
		plane := GP64()
		MOVQ(Mem{Base: word, Disp: floatsBits + i*floatsWords}, plane)
		MOVQ(plane, Mem{Base: at})
		ADDQ(length, at)
		ANDQ(plane, long)
	}
	POPCNTQ(long, long)
	copyGroup(at, bytes)
	ADDQ(long, at)
	ADDQ(long, bytes)
	ADDQ(U32(8), word)
	SUBQ(U32(packedGroup), count)
	JMP(LabelRef("escapes"))
	Label("escaped")
}
