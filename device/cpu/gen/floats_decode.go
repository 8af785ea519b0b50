package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// decode emits the reading of a coded block. Whatever its bytes are, it reads no
// more than the longest block and a vector.
func (f floatForm) decode() {
	function("decode"+f.name+"AVX512", "func(dst, src, exponents, escapes *byte) int",
		"reads a coded block of 256 values of "+f.name+" and returns its length; the last two are memory of 256 and 320 bytes.")
	p := pointers("dst", "src", "exponents", "escapes")
	src, exponents, escapes := p[1], p[2], p[3]
	b := GP32()
	first, most := ZMM(), ZMM()
	MOVBLZX(Mem{Base: src}, b)
	SUBL(U8(2), b)
	VPBROADCASTB(b, first)
	MOVBLZX(Mem{Base: src, Disp: 1}, b)
	VPBROADCASTB(b, most)
	codes, at := GP64(), GP64()
	LEAQ(Mem{Base: src, Disp: packedHead + packedBlock*f.low()}, codes)
	LEAQ(Mem{Base: codes, Disp: packedGroups * f.codes()}, at)
	bits := []VecVirtual{bytes512(1), bytes512(2), bytes512(4)}
	three := bytes512(3)

	count := f.escapes(codes)
	takeEscapes(count, at, escapes, first, three, bits)
	XORQ(count, count)
	for g := range packedGroups {
		f.distances(g, codes, count, escapes, first, most, bits, exponents)
	}
	f.join(p)
	SUBQ(src, at)
	Store(at, ReturnIndex(0))
	end()
}

// escapes counts the values of a block whose code is the last: both of its bits are set.
func (f floatForm) escapes(codes Register) GPVirtual {
	count, plane := GP64(), GP64()
	XORQ(count, count)
	for g := range packedGroups {
		MOVQ(Mem{Base: codes, Disp: g*f.codes() + 8*f.extra}, plane)
		ANDQ(Mem{Base: codes, Disp: g*f.codes() + 8*f.extra + 8}, plane)
		POPCNTQ(plane, plane)
		ADDQ(plane, count)
	}
	return count
}

// takeEscapes reads count escapes, as distances; at moves behind them.
func takeEscapes(count GPVirtual, at, escapes Register, first, three VecVirtual, bits []VecVirtual) {
	length, valid, ones, to := GP64(), GP64(), GP64(), GP64()
	MOVQ(escapes, to)
	MOVQ(I64(-1), ones)
	Label("escapes")
	CMPQ(count, U32(0))
	JLE(LabelRef("escaped"))
	groupBytes(count, length)
	MOVQ(U64(packedGroup), valid) // of the count BZHI sees a byte, and it may be 256
	CMPQ(count, valid)
	CMOVQLT(count, valid)
	BZHIQ(valid, ones, valid)
	long, v := GP64(), ZMM()
	for i, bit := range bits {
		plane, k := GP64(), K()
		MOVQ(Mem{Base: at}, plane)
		ADDQ(length, at)
		ANDQ(valid, plane)
		KMOVQ(plane, k)
		if i == 0 {
			MOVQ(plane, long)
			VMOVDQU8_Z(bit, k, v)
			continue
		}
		ANDQ(plane, long)
		VPADDB(bit, v, k, v)
	}
	k, bytes := K(), loaded(Mem{Base: at})
	KMOVQ(long, k)
	VPEXPANDB(bytes, k, v)
	POPCNTQ(long, long)
	ADDQ(long, at)
	VPCMPUB(U8(5), first, v, k)
	VPADDB(three, v, k, v)
	VMOVDQU64(v, Mem{Base: to})
	ADDQ(U32(packedGroup), to)
	SUBQ(U32(packedGroup), count)
	JMP(LabelRef("escapes"))
	Label("escaped")
}

// distances makes the highest bytes of a group; count moves on in the escapes.
func (f floatForm) distances(g int, codes Register, count GPVirtual, escapes Register, first, most VecVirtual, bits []VecVirtual, exponents Register) {
	here := func(i int) Mem { return Mem{Base: codes, Disp: g*f.codes() + 8*i} }
	k0, k1, taken, v, plane := K(), K(), K(), ZMM(), GP64()
	KMOVQ(here(f.extra), k0)
	KMOVQ(here(f.extra+1), k1)
	KANDQ(k0, k1, taken)
	VMOVDQA64(first, v)
	VPADDB(bits[0], v, k0, v)
	VPADDB(bits[1], v, k1, v)
	VPEXPANDB(loaded(Mem{Base: escapes, Index: count, Scale: 1}), taken, v)
	KMOVQ(taken, plane)
	POPCNTQ(plane, plane)
	ADDQ(plane, count)
	VPSUBB(v, most, v)
	if f.extra > 0 {
		VPSLLW(U8(f.extra), v, v)
		VPANDQ(bytes512(0xff<<f.extra&0xff), v, v)
		for i := range f.extra {
			k := K()
			KMOVQ(here(i), k)
			VPADDB(bits[i], v, k, v)
		}
	}
	VMOVDQU64(v, Mem{Base: exponents, Disp: g * packedGroup})
}

// join puts values together again.
func (f floatForm) join(p []Register) {
	order, n := f.order(false), f.inVector()
	for i := range packedBlock / n {
		low, high, to := Mem{Base: p[1], Disp: packedHead + n*f.low()*i}, Mem{Base: p[2], Disp: n * i}, Mem{Base: p[0], Disp: 64 * i}
		v := ZMM()
		if f.bytes == 4 {
			VMOVDQU64(low, v)
			VINSERTI32X4(U8(3), high, v, v)
			VPERMB(v, order, v)
			VPRORD(U8(1), v, v)
		} else {
			VMOVDQU(low, v.AsY())
			VINSERTI64X4(U8(1), high, v, v)
			VPERMB(v, order, v)
			VPSHRDW(U8(1), v, v, v)
		}
		VMOVDQU64(v, to)
	}
}
