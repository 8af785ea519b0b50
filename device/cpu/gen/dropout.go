package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// SplitMix64, as device.DropoutBits has it.
const (
	splitStep   = 0x9e3779b97f4a7c15
	splitFirst  = 0xbf58476d1ce4e5b9
	splitSecond = 0x94d049bb133111eb
)

// dropout emits y = x * scale, or 0 where the 24 random bits of the element's
// index are below threshold. A vector of floats takes two of counters.
func (v *lanes) dropout() {
	v.function("dropout", "func(y, x *float32, scale float32, threshold, state uint64, n int)",
		"sets y = x * scale, or 0 where the random bits are below threshold; state is that of the first element. n is a whole number of vectors")
	p := pointers("y", "x")
	scale := v.parameter("scale")
	threshold, n := v.words(Load(Param("threshold"), GP64())), Load(Param("n"), GP64())
	v.inVectors(n)
	z := v.registers(2)
	state := v.words(Load(Param("state"), GP64()))
	for i := range z {
		VMOVUPS(v.steps(i*v.count()/2), z[i])
		VPADDQ(state, z[i], z[i])
	}
	step := v.register()
	VMOVUPS(v.quad(splitStep*uint64(v.count())), step)
	by := [2]VecVirtual{}
	if v.wide {
		by = [2]VecVirtual{v.register(), v.register()}
		VMOVUPS(v.quad(splitFirst), by[0])
		VMOVUPS(v.quad(splitSecond), by[1])
	}
	each("", n, 1, v.bytes, p, func(offset int) {
		var below []VecVirtual
		var masks []OpmaskVirtual
		for i := range z {
			bits := v.mix(z[i], by)
			VPADDQ(step, z[i], z[i])
			if v.wide {
				k := K()
				VPCMPUQ(U8(5), threshold, bits, k) // not less
				masks = append(masks, k)
				continue
			}
			VPCMPGTQ(bits, threshold, bits)
			below = append(below, bits)
		}
		x := v.register()
		if v.wide {
			KUNPCKBW(masks[0], masks[1], masks[0])
			VMULPS_Z(at(p[1], offset), scale, masks[0], x)
		} else {
			VSHUFPS(U8(0x88), below[1], below[0], below[0])
			VPERMQ(U8(0xd8), below[0], below[0])
			VMULPS(at(p[1], offset), scale, x)
			VANDNPS(x, below[0], x)
		}
		VMOVUPS(x, at(p[0], offset))
	})
	end()
}

// words fills a vector with a 64-bit register.
func (v *lanes) words(from Register) VecVirtual {
	r := v.register()
	VMOVQ(from, r.AsX())
	VPBROADCASTQ(r.AsX(), r)
	return r
}

// quad is a vector of equal 64-bit words in memory.
func (v *lanes) quad(word uint64) Mem { return v.steps64(func(int) uint64 { return word }) }

// steps holds how far elements first, first+1, ... are from element 0.
func (v *lanes) steps(first int) Mem {
	return v.steps64(func(i int) uint64 { return splitStep * uint64(first+i) })
}

func (v *lanes) steps64(word func(i int) uint64) Mem {
	v.quads++
	m := GLOBL("quads"+string(rune('A'+v.quads))+v.suffix, RODATA|NOPTR)
	for i := range v.count() / 2 {
		DATA(8*i, U64(word(i)))
	}
	return m
}

// mix returns the bits of states z; by are its two constants, for multiply.
func (v *lanes) mix(z VecVirtual, by [2]VecVirtual) VecVirtual {
	r := v.register()
	v.foldBits(30, z, r)
	r = v.multiply(r, splitFirst, by[0])
	v.foldBits(27, r, r)
	r = v.multiply(r, splitSecond, by[1])
	v.foldBits(31, r, r)
	VPSRLQ(U8(40), r, r)
	return r
}

// foldBits sets r = z ^ z>>n.
func (v *lanes) foldBits(n int, z, r VecVirtual) {
	shifted := v.register()
	VPSRLQ(U8(n), z, shifted)
	if v.wide {
		VPXORQ(z, shifted, r)
		return
	}
	VPXOR(z, shifted, r)
}

// multiply returns the lower 64 bits of x times a constant, which AVX-512 has in
// a register.
func (v *lanes) multiply(x VecVirtual, by uint64, held VecVirtual) VecVirtual {
	if v.wide {
		VPMULLQ(held, x, x)
		return x
	}
	low, cross, high := v.register(), v.register(), v.register()
	VPMULUDQ(v.quad(by&0xffffffff), x, low)
	VPMULUDQ(v.quad(by>>32), x, cross)
	VPSRLQ(U8(32), x, high)
	VPMULUDQ(v.quad(by&0xffffffff), high, high)
	VPADDQ(high, cross, cross)
	VPSLLQ(U8(32), cross, cross)
	VPADDQ(cross, low, low)
	return low
}

// rowsAtOnce is how many rows addRows adds while it holds a sum.
const rowsAtOnce = 4

// addRows emits sums[j] += a[0][j], then a[1][j], ..., in float64: the order of
// portable loops.
func (v *lanes) addRows() {
	v.function("addRows", "func(sums *float64, a *float32, stride, n int)",
		"adds n elements of each of 4 rows, stride bytes apart, to sums; n is a whole number of vectors")
	p := pointers("sums", "a")
	stride, n, three := Load(Param("stride"), GP64()), Load(Param("n"), GP64()), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	v.inVectors(n)
	Label("next")
	for half := range 2 {
		sum := v.load(at(p[0], half*v.bytes))
		for i := range rowsAtOnce {
			row := Mem{Base: p[1], Disp: half * v.bytes / 2}
			switch i {
			case 1:
				row.Index, row.Scale = stride, 1
			case 2:
				row.Index, row.Scale = stride, 2
			case 3:
				row.Index, row.Scale = three, 1
			}
			x := v.register()
			VCVTPS2PD(row, x)
			VADDPD(x, sum, sum)
		}
		VMOVUPS(sum, at(p[0], half*v.bytes))
	}
	ADDQ(U32(2*v.bytes), p[0])
	ADDQ(U32(v.bytes), p[1])
	DECQ(n)
	JNZ(LabelRef("next"))
	end()
}
