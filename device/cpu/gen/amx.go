package main

import (
	little "encoding/binary"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// amx emits products of float32 on the matrix unit (Intel AMX), which multiplies
// numbers of bfloat16 and adds up in float32. A float32 is the exact sum of three
// parts of bfloat16, high, middle and low; of the nine products of parts the six
// largest are computed. See cpu.partsProduct.
func amx() {
	split()
	splitRows()
	partsProduct()
}

// Bytes of 16 rows of a tile, of which each has 64.
const tileBytes = 1024

// split emits the cut into parts. Numbers go in pairs into the halves of a word,
// the first below, as the matrix unit takes them.
func split() {
	function("splitAVX512", "func(dst, first, second *float32, step, part, n int)",
		"cuts n > 0 lines of 16 pairs, one number of each from first and from second, step bytes apart, into lines of high, middle and low parts, part bytes apart.")
	dst, first, second := param("dst"), param("first"), param("second")
	step, part, n := param("step"), param("part"), param("n")
	s := newSplitter(dst, part)
	loop("line", n, func() {
		s.line(Mem{Base: first}, Mem{Base: second})
		ADDQ(step, first)
		ADDQ(step, second)
	})
	end()
}

// splitRows emits split for lines that lie where a table of cpu.row says.
func splitRows() {
	function("splitRowsAVX512", "func(dst, base *float32, steps *int64, rows *int64, part, n int)",
		"is splitAVX512 for n > 0 lines at the byte offsets from base that every second number of rows gives, to which the two of steps are added for the two of a pair.")
	dst, base, steps := param("dst"), param("base"), param("steps")
	rows, part, n := param("rows"), param("part"), param("n")
	first, second := GP64(), GP64()
	MOVQ(Mem{Base: steps}, first)
	ADDQ(base, first)
	MOVQ(Mem{Base: steps, Disp: 8}, second)
	ADDQ(base, second)
	s := newSplitter(dst, part)
	offset := GP64()
	loop("line", n, func() {
		MOVQ(Mem{Base: rows}, offset)
		ADDQ(U32(16), rows)
		s.line(Mem{Base: first, Index: offset, Scale: 1}, Mem{Base: second, Index: offset, Scale: 1})
	})
	end()
}

// splitter holds what cutting lines needs.
type splitter struct {
	high, low, part Register // where the parts go
	upper, half     VecVirtual
}

func newSplitter(dst, part Register) *splitter {
	s := &splitter{high: dst, low: GP64(), part: part, upper: ZMM(), half: ZMM()}
	LEAQ(Mem{Base: dst, Index: part, Scale: 2}, s.low)
	word := GP32()
	MOVL(U32(0xffff0000), word)
	VPBROADCASTD(word, s.upper)
	MOVL(U32(0x8000), word)
	VPBROADCASTD(word, s.half)
	return s
}

// line cuts a line of pairs. The high part is cut off, which keeps NaN; the
// middle one is rounded.
func (s *splitter) line(first, second Mem) {
	rest, high, middle := wideVectors(2), wideVectors(2), wideVectors(2)
	VMOVUPS(first, rest[0])
	VMOVUPS(second, rest[1])
	for i, x := range rest {
		VPANDD(s.upper, x, high[i])
		VSUBPS(high[i], x, x)
	}
	pairs(high[0], high[1], Mem{Base: s.high})
	for i, x := range rest {
		VPADDD(s.half, x, middle[i])
		VPANDD(s.upper, middle[i], middle[i])
		VSUBPS(middle[i], x, x)
	}
	pairs(middle[0], middle[1], Mem{Base: s.high, Index: s.part, Scale: 1})
	// Of a number below 2^-110 the rest has lost its leading bit and is no part of 8
	// bits: the others would go into its neighbour's half.
	VPANDD(s.upper, rest[1], rest[1])
	pairs(rest[0], rest[1], Mem{Base: s.low})
	ADDQ(U32(lineBytes), s.high)
	ADDQ(U32(lineBytes), s.low)
}

// pairs stores the upper halves of two vectors in pairs.
func pairs(first, second VecVirtual, to Mem) {
	VPSRLD(U8(16), first, first)
	VPORD(second, first, first)
	VMOVDQU32(first, to)
}

// Offsets of the fields of cpu.partsProduct; cpu.TestPartsOffsets holds them.
const (
	partsPositions  = 24
	partsPanels     = 32
	partsChunks     = 40
	partsStrideA    = 48
	partsPartA      = 56
	partsSecondA    = 64
	partsStrideB    = 72
	partsPanelB     = 80
	partsStrideC    = 88
	partsPanelC     = 96
	partsRowC       = 104
	partsSecondC    = 112
	partsAccumulate = 120
	partsShape      = 128
)

// partsProduct emits the product of one or two groups of up to 16 rows with
// pairs of panels: four tiles of sums, two of A and two of B.
func partsProduct() {
	function("partsProductAMX", "func(p *uint64)", "computes the cpu.partsProduct at p, whose counts are not 0.")
	Load(Param("p"), R8)
	a, b, c := bases()
	LEAQ(at(R8, partsShape), RAX)
	configure(RAX)
	MOVQ(U32(lineBytes), RCX)
	MOVQ(at(R8, partsRowC), RBX)
	MOVQ(at(R8, partsPartA), R12)
	MOVQ(at(R8, partsPositions), R9)
	MOVQ(at(R8, partsSecondA), R13)
	TESTQ(R13, R13)
	JZ(LabelRef("single"))
	positions("two", 2, a, b, c)
	JMP(LabelRef("end"))
	Label("single")
	positions("one", 1, a, b, c)
	Label("end")
	emit(0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	end()
}

// bases keeps where a position starts in A, B and C on the stack: the garbage
// collector, which looks at p, must not see pointers behind their ends.
func bases() (a, b, c Mem) {
	locals := AllocLocal(24)
	for i, m := range []*Mem{&a, &b, &c} {
		*m = locals.Offset(8 * i)
		MOVQ(at(R8, 8*i), RAX)
		MOVQ(RAX, *m)
	}
	return a, b, c
}

// positions emits the loop over positions and panels for so many groups of rows.
func positions(name string, groups int, a, b, c Mem) {
	Label(name + "position")
	MOVQ(b, R14)
	MOVQ(c, R15)
	MOVQ(at(R8, partsPanels), R10)
	Label(name + "pair")
	CMPQ(R10, U32(2))
	JLT(LabelRef(name + "odd"))
	sumsOf(name+"pair", groups, 2, a)
	for range 2 {
		ADDQ(at(R8, partsPanelB), R14)
		ADDQ(at(R8, partsPanelC), R15)
	}
	SUBQ(U32(2), R10)
	JMP(LabelRef(name + "pair"))
	Label(name + "odd")
	TESTQ(R10, R10)
	JZ(LabelRef(name + "done"))
	sumsOf(name+"odd", groups, 1, a)
	Label(name + "done")
	for i, stride := range []int{partsStrideA, partsStrideB, partsStrideC} {
		MOVQ(at(R8, stride), RAX)
		ADDQ(RAX, []Mem{a, b, c}[i])
	}
	DECQ(R9)
	JNZ(LabelRef(name + "position"))
}

// Tiles 0 to 3 hold sums: tile 2*group+panel. Tiles 4 and 5 hold the groups of
// A, 6 and 7 the panels of B.
func sumsOf(name string, groups, panels int, a Mem) {
	TESTQ(U32(1), at(R8, partsAccumulate))
	JNZ(LabelRef(name + "load"))
	for i := range 2 * groups {
		if i%2 < panels {
			emit(0xc4, 0xe2, 0x7b, 0x49, 0xc0|byte(i)<<3) // TILEZERO
		}
	}
	JMP(LabelRef(name + "start"))
	Label(name + "load")
	forSums(groups, panels, loadTile)
	Label(name + "start")
	MOVQ(a, RAX)
	MOVQ(RAX, RDX)
	ADDQ(R13, RDX)
	MOVQ(R14, RSI)
	MOVQ(R14, RDI)
	ADDQ(at(R8, partsPanelB), RDI)
	MOVQ(at(R8, partsChunks), R11)
	Label(name + "chunk")
	// The parts of A, each with those of B that make the largest products, in
	// the order that loads the fewest.
	loaded := -1
	for _, with := range [][]int{{0, 1, 2}, {1, 0}, {0}} {
		for g, base := range []GPPhysical{RAX, RDX}[:groups] {
			loadTile(4+g, base, RCX, 0)
			ADDQ(R12, base)
		}
		for _, j := range with {
			for q, base := range []GPPhysical{RSI, RDI}[:panels] {
				if j != loaded {
					loadTile(6+q, base, RCX, j*tileBytes)
				}
			}
			loaded = j
			for g := range groups {
				for q := range panels {
					multiplyTiles(2*g+q, 4+g, 6+q)
				}
			}
		}
	}
	ADDQ(U32(3*tileBytes), RSI)
	ADDQ(U32(3*tileBytes), RDI)
	DECQ(R11)
	JNZ(LabelRef(name + "chunk"))
	forSums(groups, panels, storeTile)
}

// forSums calls f for the sums with where they lie in C.
func forSums(groups, panels int, f func(tile int, base, stride GPPhysical, displacement int)) {
	MOVQ(R15, RAX)
	for g := range groups {
		f(2*g, RAX, RBX, 0)
		if panels == 2 {
			MOVQ(RAX, RDX)
			ADDQ(at(R8, partsPanelC), RDX)
			f(2*g+1, RDX, RBX, 0)
		}
		ADDQ(at(R8, partsSecondC), RAX)
	}
}

// emit writes an instruction that neither the assembler nor avo knows.
func emit(code ...byte) {
	for _, b := range code {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}})
	}
}

// configure loads the shapes of the tiles: LDTILECFG.
func configure(from GPPhysical) { emit(0xc4, 0xe2, 0x78, 0x49, number(from)) }

// number returns the number of one of the first eight registers.
func number(r GPPhysical) byte {
	for i, known := range []GPPhysical{RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI} {
		if r == known {
			return byte(i)
		}
	}
	panic("not one of the first eight registers")
}

// loadTile emits TILELOADD: rows stride apart from base + displacement.
func loadTile(tile int, base, stride GPPhysical, displacement int) {
	moveTile(0x7b, tile, base, stride, displacement)
}

// storeTile emits TILESTORED.
func storeTile(tile int, base, stride GPPhysical, displacement int) {
	moveTile(0x7a, tile, base, stride, displacement)
}

func moveTile(prefix byte, tile int, base, stride GPPhysical, displacement int) {
	const indexed, longDisplacement = 4, 0x80
	code := []byte{0xc4, 0xe2, prefix, 0x4b, longDisplacement | byte(tile)<<3 | indexed, number(stride)<<3 | number(base)}
	emit(little.LittleEndian.AppendUint32(code, uint32(displacement))...)
}

// multiplyTiles emits TDPBF16PS: sum += a b.
func multiplyTiles(sum, a, b int) {
	emit(0xc4, 0xe2, byte(^b&15)<<3|2, 0x5c, 0xc0|byte(sum)<<3|byte(a))
}
