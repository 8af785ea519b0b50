package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// winogradWidth is the registers of a family.
type winogradWidth struct {
	suffix   string
	register func() VecVirtual
	parts    int // of a line of 16 floats
	bytes    int // of a register
	// resident tells whether there are registers to keep constants in.
	resident bool
}

func winogradAVX2() {
	w := &winogradWidth{suffix: "AVX2", register: func() VecVirtual { return YMM() }, parts: 2, bytes: 32}
	winogradFamily(w)
	untranspose()
	apart()
}

func winogradAVX512() {
	winogradFamily(&winogradWidth{suffix: "AVX512", register: func() VecVirtual { return ZMM() }, parts: 1, bytes: 64, resident: true})
}

// winogradFamily emits the transforms of F(2x2, 3x3) and F(4x4, 3x3).
func winogradFamily(w *winogradWidth) {
	for _, f := range winogradForms() {
		e := newTransform(w, f)
		e.down("Data", f.data, f.points, f.points)
		e.down("Gradient", f.gradient, f.outputs, f.points)
		e.across("Data", f.data, f.points)
		e.across("Gradient", f.gradient, f.outputs)
		e.outputAcross()
		e.outputDown()
		e.inputAcross()
		e.inputDown()
		e.weights()
		e.weightsGradient()
	}
}

// transform emits the kernels of one form in one width. A table is points rows
// of lines (16 floats, one pixel of a block of channels), pitch bytes apart; the
// positions of a tile are points x points slabs, slab bytes apart.
type transform struct {
	*winogradWidth
	form      *winogradForm
	constants Mem
	loaded    map[int]VecVirtual
}

func newTransform(w *winogradWidth, f *winogradForm) *transform {
	e := &transform{winogradWidth: w, form: f}
	e.constants = GLOBL("winograd"+f.name+w.suffix, RODATA|NOPTR)
	for i, v := range f.constants {
		for lane := range 8 {
			DATA(32*i+4*lane, F32(v))
		}
	}
	return e
}

func (e *transform) begin(name, signature, doc string) {
	function("winograd"+e.form.name+name+e.suffix, signature, doc)
	e.loaded = map[int]VecVirtual{}
	if e.resident {
		for i := range e.form.constants {
			v := e.register()
			VBROADCASTSS(e.constants.Offset(32*i), v)
			e.loaded[i] = v
		}
	}
}

// number returns a constant as an operand.
func (e *transform) number(v float32) Op {
	for i, c := range e.form.constants {
		if c == v {
			if r, ok := e.loaded[i]; ok {
				return r
			}
			return e.constants.Offset(32 * i)
		}
	}
	panic(fmt.Sprint("no constant ", v))
}

func (e *transform) load(m Mem) VecVirtual {
	v := e.register()
	VMOVUPS(m, v)
	return v
}

func (e *transform) copy(x VecVirtual) VecVirtual {
	v := e.register()
	VMOVAPS(x, v)
	return v
}

func (e *transform) add(x, y VecVirtual) VecVirtual {
	v := e.register()
	VADDPS(y, x, v)
	return v
}

// sub returns x - y.
func (e *transform) sub(x, y VecVirtual) VecVirtual {
	v := e.register()
	VSUBPS(y, x, v)
	return v
}

func (e *transform) mul(c float32, x VecVirtual) VecVirtual {
	v := e.register()
	VMULPS(e.number(c), x, v)
	return v
}

// fma adds c*x to sum and returns sum.
func (e *transform) fma(c float32, x, sum VecVirtual) VecVirtual {
	VFMADD231PS(e.number(c), x, sum)
	return sum
}

// fnma takes c*x from sum and returns sum.
func (e *transform) fnma(c float32, x, sum VecVirtual) VecVirtual {
	VFNMADD231PS(e.number(c), x, sum)
	return sum
}

// rows are the addresses of up to six equally distant rows.
type rows struct{ lower, upper, pitch Register }

// newRows copies base.
func newRows(base, pitch Register) *rows {
	r := &rows{GP64(), GP64(), pitch}
	MOVQ(base, r.lower)
	LEAQ(Mem{Base: base, Index: pitch, Scale: 2}, r.upper)
	ADDQ(pitch, r.upper)
	return r
}

func (r *rows) at(i, offset int) Mem {
	base := r.lower
	if i >= 3 {
		base, i = r.upper, i-3
	}
	if i == 0 {
		return Mem{Base: base, Disp: offset}
	}
	return Mem{Base: base, Index: r.pitch, Scale: uint8(i), Disp: offset}
}

func (r *rows) advance(bytes int) {
	ADDQ(U32(bytes), r.lower)
	ADDQ(U32(bytes), r.upper)
}

// param loads an integer or a pointer.
func param(name string) Register { return Load(Param(name), GP64()) }

// lineRows loads n pointers from the array at lines.
func lineRows(n int) []Register {
	lines := param("lines")
	out := make([]Register, n)
	for i := range out {
		out[i] = GP64()
		MOVQ(at(lines, 8*i), out[i])
	}
	return out
}

// loop emits body while the counter, which is not 0, goes down to 0.
func loop(label string, count Register, body func()) {
	Label(label)
	body()
	DECQ(count)
	JNZ(LabelRef(label))
}
