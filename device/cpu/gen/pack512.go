package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const lineBytes = 64 // 16 floats

// lanesMask is the mask of one of the four lanes of a register.
func lanesMask(lane int) Op {
	scalar, mask := GP32(), K()
	MOVL(U32(0xf<<(4*lane)), scalar)
	KMOVW(scalar, mask)
	return mask
}

// turner transposes squares of 16 x 16.
type turner struct {
	stride, three Register // stride and three times stride, in bytes
	row           [4]Register
	lanes         [4]Op // from 1
}

// newTurner reads rows from src, stride bytes apart.
func newTurner(src, stride Register) *turner {
	t := &turner{stride: stride, three: GP64()}
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, t.three)
	t.row[0] = src
	for i := 1; i < 4; i++ {
		t.row[i] = GP64()
		LEAQ(Mem{Base: t.row[i-1], Index: stride, Scale: 4}, t.row[i])
		t.lanes[i] = lanesMask(i)
	}
	return t
}

// quad returns columns [4*q, 4*q+4) of the square. Lane l of a register first
// takes four floats of row 4*l+i; masked loads do that beside the one port that
// moves floats between lanes. Then each lane is a square of its own.
func (t *turner) quad(q int) []VecVirtual {
	v := wideVectors(4)
	for i := range v {
		for lane := range 4 {
			from := Mem{Base: t.row[lane], Disp: 16 * q}
			switch i {
			case 1:
				from.Index, from.Scale = t.stride, 1
			case 2:
				from.Index, from.Scale = t.stride, 2
			case 3:
				from.Index, from.Scale = t.three, 1
			}
			if lane == 0 {
				VMOVUPS(from, v[i].AsX())
				continue
			}
			VBROADCASTF32X4(from, t.lanes[lane], v[i])
		}
	}
	low, high := wideVectors(2), wideVectors(2)
	for i := range 2 {
		VUNPCKLPS(v[2*i+1], v[2*i], low[i])
		VUNPCKHPS(v[2*i+1], v[2*i], high[i])
	}
	out := wideVectors(4)
	VUNPCKLPD(low[1], low[0], out[0])
	VUNPCKHPD(low[1], low[0], out[1])
	VUNPCKLPD(high[1], high[0], out[2])
	VUNPCKHPD(high[1], high[0], out[3])
	return out
}

// advance moves on by bytes.
func (t *turner) advance(bytes int) {
	for _, r := range t.row {
		ADDQ(U32(bytes), r)
	}
}

// transpose512 emits 16 rows by n columns.
func transpose512() {
	function("transposeAVX512", "func(dst, src *float32, stride, n int)",
		"sets dst[k*16+i] = src[i*stride+k] for 16 rows and n columns, a multiple of 16. stride is in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, n := Load(Param("stride"), GP64()), Load(Param("n"), GP64())
	t := newTurner(src, stride)
	Label("loop")
	for q := range 4 {
		for i, v := range t.quad(q) {
			VMOVUPS(v, at(dst, (4*q+i)*lineBytes))
		}
	}
	ADDQ(U32(16*lineBytes), dst)
	t.advance(lineBytes)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	end()
}

// turn emits the store of a product that was computed with its sides exchanged.
func turn() {
	function("turnAVX512", "func(c, src, bias *float32, stride, rows, width, flags int)",
		"transposes 16 lines of 16 floats at src and writes the first rows of them, width floats each, to c. stride is in bytes; bias may be nil.")
	c, src, bias := Load(Param("c"), GP64()), Load(Param("src"), GP64()), Load(Param("bias"), GP64())
	stride, rows := Load(Param("stride"), GP64()), Load(Param("rows"), GP64())
	width, flags := Load(Param("width"), GP64()), Load(Param("flags"), GP64())
	ones, mask := GP64(), K()
	MOVQ(U32(1), ones)
	MOVQ(width, RCX)
	SHLQ(CL, ones)
	DECQ(ones)
	KMOVW(ones.As32(), mask)
	z := ZMM()
	VXORPS(z, z, z)
	line := GP64()
	MOVQ(U32(lineBytes), line)
	t := newTurner(src, line)
	for q := range 4 {
		for i, v := range t.quad(q) {
			name := fmt.Sprintf("row%d", 4*q+i)
			TESTQ(U32(flagAccumulate), flags)
			JZ(LabelRef(name + "fresh"))
			VADDPS(at(c, 0), v, mask, v)
			Label(name + "fresh")
			TESTQ(bias, bias)
			JZ(LabelRef(name + "unbiased"))
			VADDPS(at(bias, 0), v, v)
			Label(name + "unbiased")
			TESTQ(U32(flagReLU), flags)
			JZ(LabelRef(name + "linear"))
			VMAXPS(v, z, v) // the second operand wins for NaN and -0
			Label(name + "linear")
			VMOVUPS(v, mask, at(c, 0))
			DECQ(rows)
			JZ(LabelRef("end"))
			ADDQ(stride, c)
		}
	}
	Label("end")
	end()
}

// lines emits the packing of rows that are not transposed. Eight rows go
// together, so that eight streams are read and each panel is written in runs.
func lines() {
	function("linesAVX512", "func(dst, src *float32, stride, next, rows, count int)",
		"copies lines of 16 floats: line j of row i to dst + j*next + 64*i bytes, for rows rows, stride bytes apart, of count lines.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, next := Load(Param("stride"), GP64()), Load(Param("next"), GP64())
	rows, count := Load(Param("rows"), GP64()), Load(Param("count"), GP64())
	from, to, left := GP64(), GP64(), GP64()
	three, upper := GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	for _, n := range []int{8, 1} {
		top, inner, done := fmt.Sprintf("rows%d", n), fmt.Sprintf("lines%d", n), fmt.Sprintf("done%d", n)
		Label(top)
		CMPQ(rows, U32(n))
		JLT(LabelRef(done))
		MOVQ(src, from)
		MOVQ(dst, to)
		MOVQ(count, left)
		Label(inner)
		v := wideVectors(n)
		if n == 8 {
			LEAQ(Mem{Base: from, Index: stride, Scale: 4}, upper)
		}
		for i := range n {
			base := from
			if i >= 4 {
				base = upper
			}
			m := Mem{Base: base}
			switch i % 4 {
			case 1:
				m.Index, m.Scale = stride, 1
			case 2:
				m.Index, m.Scale = stride, 2
			case 3:
				m.Index, m.Scale = three, 1
			}
			VMOVUPS(m, v[i])
		}
		for i := range n {
			VMOVUPS(v[i], at(to, lineBytes*i))
		}
		ADDQ(U32(lineBytes), from)
		ADDQ(next, to)
		DECQ(left)
		JNZ(LabelRef(inner))
		ADDQ(U32(n*lineBytes), dst)
		if n == 8 {
			LEAQ(Mem{Base: src, Index: stride, Scale: 8}, src)
		} else {
			ADDQ(stride, src)
		}
		SUBQ(U32(n), rows)
		JMP(LabelRef(top))
		Label(done)
	}
	end()
}
