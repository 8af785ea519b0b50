package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes emits the same kernel for vectors of 8 floats (AVX2 and FMA) and of 16
// (AVX-512 F and DQ).
type lanes struct {
	suffix string
	bytes  int
	wide   bool
	table  map[uint32]Mem // constants of this file, in memory
	held   map[uint32]Op  // constants of this function, in registers
	quads  int            // tables of 64-bit words so far
	ends   *Mem           // words of ones, then of zeros, to load masks from
	mask   Op             // of the elements that a last vector has, while that is emitted
}

func lanes8() *lanes { return &lanes{suffix: "AVX2", bytes: 32, table: map[uint32]Mem{}} }

func lanes16() *lanes {
	return &lanes{suffix: "AVX512", bytes: 64, wide: true, table: map[uint32]Mem{}}
}

func (v *lanes) count() int { return v.bytes / 4 }

// function starts a function over n elements.
func (v *lanes) function(name, signature, doc string) {
	v.held = map[uint32]Op{}
	function(name+v.suffix, signature, doc+".")
}

// each emits body for all elements that the parameter n counts: for unroll
// vectors, then for one at a time, then for what is left of one. body gets its
// byte offset from the pointers; it loads and stores through v, and takes care
// that only(x) holds where lanes are added up.
func (v *lanes) each(unroll int, moving []Register, body func(offset int)) {
	rest, n := Load(Param("n"), GP64()), GP64()
	MOVQ(rest, n)
	v.inVectors(n)
	each("", n, unroll, v.bytes, moving, body)
	ANDQ(U8(v.count()-1), rest)
	JZ(LabelRef("whole"))
	v.setMask(rest)
	body(0)
	v.mask = nil
	Label("whole")
}

// inVectors turns a number of elements into one of whole vectors.
func (v *lanes) inVectors(n Register) { SHRQ(U8(math.Ilogb(float64(v.count()))), n) }

// setMask makes a mask of the first rest lanes.
func (v *lanes) setMask(rest Register) {
	if v.ends == nil {
		m := GLOBL("ends"+v.suffix, RODATA|NOPTR)
		for i := range 2 * v.count() {
			word := uint32(0)
			if i < v.count() {
				word = math.MaxUint32
			}
			DATA(4*i, U32(word))
		}
		v.ends = &m
	}
	at, words := GP64(), v.register()
	LEAQ(v.ends.Offset(v.bytes), at)
	SHLQ(U8(2), rest)
	SUBQ(rest, at)
	VMOVUPS(Mem{Base: at}, words)
	v.mask = words
	if v.wide {
		k := K()
		VPMOVD2M(words, k)
		v.mask = k
	}
}

func (v *lanes) register() VecVirtual {
	if v.wide {
		return ZMM()
	}
	return YMM()
}

func (v *lanes) registers(n int) []VecVirtual {
	out := make([]VecVirtual, n)
	for i := range out {
		out[i] = v.register()
	}
	return out
}

// load loads a vector; lanes beyond the last element are 0.
func (v *lanes) load(m Mem) VecVirtual {
	r := v.register()
	switch {
	case v.mask == nil:
		VMOVUPS(m, r)
	case v.wide:
		VMOVUPS_Z(m, v.mask, r)
	default:
		VMASKMOVPS(m, v.mask, r)
	}
	return r
}

// operand is memory where that can be read whole, else what load returns.
func (v *lanes) operand(m Mem) Op {
	if v.mask == nil {
		return m
	}
	return v.load(m)
}

func (v *lanes) store(x VecVirtual, m Mem) {
	switch {
	case v.mask == nil:
		VMOVUPS(x, m)
	case v.wide:
		VMOVUPS(x, v.mask, m)
	default:
		VMASKMOVPS(x, v.mask, m)
	}
}

// only makes lanes beyond the last element 0.
func (v *lanes) only(x VecVirtual) {
	switch {
	case v.mask == nil:
	case v.wide:
		VMOVAPS_Z(x, v.mask, x)
	default:
		VANDPS(v.mask, x, x)
	}
}

// or replaces lanes beyond the last element by those of y.
func (v *lanes) or(x, y VecVirtual) {
	switch {
	case v.mask == nil:
	case v.wide:
		VBLENDMPS(x, y, v.mask, x)
	default:
		VBLENDVPS(v.mask, x, y, x)
	}
}

func (v *lanes) zero() VecVirtual {
	r := v.register()
	VXORPS(r, r, r)
	return r
}

// parameter returns a vector filled with a float32 argument.
func (v *lanes) parameter(name string) VecVirtual {
	address, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.register()
	VBROADCASTSS(address.Addr, r)
	return r
}

// bits is a vector of equal words: in a register when it is held, else in
// memory, where AVX-512 needs the word once. Instructions take it through with.
func (v *lanes) bits(word uint32) Op {
	if r, ok := v.held[word]; ok {
		return r
	}
	m, ok := v.table[word]
	if !ok {
		m = GLOBL(fmt.Sprintf("constant%08x%s", word, v.suffix), RODATA|NOPTR)
		DATA(0, U32(word))
		for i := 1; i < v.count() && !v.wide; i++ {
			DATA(4*i, U32(word))
		}
		v.table[word] = m
	}
	return m
}

func (v *lanes) float(x float64) Op { return v.bits(math.Float32bits(float32(x))) }

// with emits op, or its form that repeats one word of memory, with the constant
// c as its first operand.
func (v *lanes) with(op, repeat func(ops ...Op), c Op, rest ...Op) {
	if _, ok := c.(Mem); ok && v.wide {
		op = repeat
	}
	op(append([]Op{c}, rest...)...)
}

// fill sets r to a constant.
func (v *lanes) fill(r VecVirtual, c Op) {
	if _, ok := c.(Mem); ok && v.wide {
		VBROADCASTSS(c, r)
		return
	}
	VMOVUPS(c, r)
}

// inRegister is float in a register.
func (v *lanes) inRegister(x float64) Op {
	c := v.float(x)
	if _, ok := c.(Mem); ok {
		r := v.register()
		v.fill(r, c)
		return r
	}
	return c
}

// hold keeps constants in registers for the rest of the function.
func (v *lanes) hold(values ...float64) {
	for _, x := range values {
		v.held[math.Float32bits(float32(x))] = v.inRegister(x)
	}
}

// clamp limits x to [lo, hi]; NaN stays.
func (v *lanes) clamp(x VecVirtual, lo, hi float64) {
	VMINPS(x, v.inRegister(hi), x) // the first operand wins for NaN
	VMAXPS(x, v.inRegister(lo), x)
}

// atLeast is the lower half of clamp, into a new register.
func (v *lanes) atLeast(x VecVirtual, lo float64) VecVirtual {
	r := v.register()
	VMAXPS(x, v.inRegister(lo), r)
	return r
}

// polynomial returns the polynomial of t with the coefficients c, lowest first.
func (v *lanes) polynomial(t VecVirtual, c ...float64) VecVirtual {
	last := len(c) - 1
	r := v.register()
	v.fill(r, v.float(c[last]))
	for i := last - 1; i >= 0; i-- {
		v.with(VFMADD213PS, VFMADD213PS_BCST, v.float(c[i]), t, r)
	}
	return r
}

// fold adds the lanes of x, or combines them otherwise; the result is the first
// lane of a register.
func (v *lanes) fold(x VecVirtual, combine func(ops ...Op)) VecVirtual {
	if v.wide {
		high := YMM()
		VEXTRACTF64X4(U8(1), x, high)
		combine(high, x.AsY(), x.AsY())
	}
	high := XMM()
	VEXTRACTF128(U8(1), x.AsY(), high)
	low := XMM()
	combine(high, x.AsX(), low)
	VMOVHLPS(low, low, high)
	combine(high, low, low)
	VMOVSHDUP(low, high)
	combine(high, low, low)
	return low
}

// results stores the first lanes as results and returns.
func (v *lanes) results(values ...VecVirtual) {
	for i, x := range values {
		Store(x.AsX(), ReturnIndex(i))
	}
	end()
}
