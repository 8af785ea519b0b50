package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of cpu.windowRun; cpu.TestWindowOffsets holds them.
const (
	runSmall   = 0
	runArg     = 24
	runLarge   = 48
	runTaps    = 72
	runCount   = 80 // the length of taps
	runPixels  = 96
	runStride  = 104
	runStep    = 112
	runDivisor = 116
)

// windows emits pooling of runs of pixels of 16 channels, whose windows have
// the same taps. A tap is the byte offset of a pixel and its number.
func windows(v *lanes) {
	v.maxForward()
	v.averageForward()
	for _, add := range []bool{false, true} {
		v.maxBackward(add)
		v.averageBackward(add)
	}
}

// windowFunction holds what the pixels of a run share.
type windowFunction struct {
	run, small, arg, large, pixels, stride Register
	tap, count, offset                     Register
}

func (v *lanes) windowFunction(name, doc string) *windowFunction {
	v.function(name, "func(run *uint64)", doc+" of the cpu.windowRun at run, which has pixels and taps")
	f := &windowFunction{run: Load(Param("run"), GP64()), small: GP64(), arg: GP64(), large: GP64(), pixels: GP64(), stride: GP64(),
		tap: GP64(), count: GP64(), offset: GP64()}
	MOVQ(at(f.run, runSmall), f.small)
	MOVQ(at(f.run, runArg), f.arg)
	MOVQ(at(f.run, runLarge), f.large)
	MOVQ(at(f.run, runPixels), f.pixels)
	MOVQ(at(f.run, runStride), f.stride)
	return f
}

// eachPixel emits body for every pixel and returns.
func (f *windowFunction) eachPixel(body func()) {
	Label("pixel")
	MOVQ(at(f.run, runTaps), f.tap)
	MOVQ(at(f.run, runCount), f.count)
	body()
	ADDQ(U32(pixelBytes), f.small)
	ADDQ(U32(pixelBytes), f.arg)
	ADDQ(f.stride, f.large)
	DECQ(f.pixels)
	JNZ(LabelRef("pixel"))
	end()
}

// eachTap emits body for the taps from the present one on; body finds the
// tap's pixel at large + offset.
func (f *windowFunction) eachTap(body func()) {
	Label("tap")
	MOVQ(at(f.tap, 0), f.offset)
	body()
	ADDQ(U32(16), f.tap)
	DECQ(f.count)
	JNZ(LabelRef("tap"))
}

// at returns part i of the pixel of the present tap.
func (f *windowFunction) at(i int, v *lanes) Mem {
	return Mem{Base: f.large, Index: f.offset, Scale: 1, Disp: i * v.bytes}
}

// parts is how many vectors a pixel has.
func (v *lanes) parts() int { return pixelBytes / v.bytes }

// number fills a vector with the 32-bit word at m.
func (v *lanes) number(m Mem) VecVirtual {
	r := v.register()
	VPBROADCASTD(m, r)
	return r
}

// maxForward keeps the first maximum, or the first NaN.
func (v *lanes) maxForward() {
	f := v.windowFunction("maxForward", "computes maxima and their places")
	moved, step := v.zero(), v.number(at(f.run, runStep))
	best, where := v.registers(v.parts()), v.registers(v.parts())
	f.eachPixel(func() {
		MOVQ(at(f.tap, 0), f.offset)
		for i := range best {
			VMOVUPS(f.at(i, v), best[i])
			VPBROADCASTD(at(f.tap, 8), where[i])
		}
		JMP(LabelRef("others"))
		f.eachTap(func() {
			number := v.number(at(f.tap, 8))
			for i := range best {
				x := v.register()
				VMOVUPS(f.at(i, v), x)
				v.better(x, number, best[i], where[i])
			}
			Label("others")
		})
		for i := range best {
			VMOVUPS(best[i], at(f.small, i*v.bytes))
			VPADDD(moved, where[i], where[i])
			VMOVUPS(where[i], at(f.arg, i*v.bytes))
		}
		VPADDD(step, moved, moved)
	})
}

// better replaces best by x where that is larger or NaN and best is not NaN.
func (v *lanes) better(x, number, best, where VecVirtual) {
	const ordered, notLessOrEqual = 7, 6
	if v.wide {
		k := K()
		VCMPPS(U8(ordered), best, best, k)
		VCMPPS(U8(notLessOrEqual), best, x, k, k)
		VMOVAPS(x, k, best)
		VMOVDQA32(number, k, where)
		return
	}
	take, larger := v.register(), v.register()
	VCMPPS(U8(ordered), best, best, take)
	VCMPPS(U8(notLessOrEqual), best, x, larger)
	VANDPS(larger, take, take)
	VBLENDVPS(take, x, best, best)
	VBLENDVPS(take, number, where, where)
}

// maxBackward gives each gradient to the pixel that its maximum came from. The
// form that does not add is for windows that do not overlap.
func (v *lanes) maxBackward(add bool) {
	name := "maxBackward"
	if add {
		name += "Add"
	}
	f := v.windowFunction(name, "hands gradients to the maxima")
	moved, step := v.zero(), v.number(at(f.run, runStep))
	gradient, where := v.registers(v.parts()), v.registers(v.parts())
	f.eachPixel(func() {
		for i := range gradient {
			VMOVUPS(at(f.small, i*v.bytes), gradient[i])
			VMOVUPS(at(f.arg, i*v.bytes), where[i])
			VPSUBD(moved, where[i], where[i])
		}
		f.eachTap(func() {
			number := v.number(at(f.tap, 8))
			for i := range gradient {
				x := v.register()
				if v.wide {
					k := K()
					VPCMPEQD(number, where[i], k)
					VMOVAPS_Z(gradient[i], k, x)
				} else {
					VPCMPEQD(number, where[i], x)
					VANDPS(gradient[i], x, x)
				}
				if add {
					VADDPS(f.at(i, v), x, x)
				}
				VMOVUPS(x, f.at(i, v))
			}
		})
		VPADDD(step, moved, moved)
	})
}

func (v *lanes) averageForward() {
	f := v.windowFunction("averageForward", "computes averages")
	divisor := v.number(at(f.run, runDivisor))
	sums := v.registers(v.parts())
	f.eachPixel(func() {
		for _, s := range sums {
			VXORPS(s, s, s)
		}
		f.eachTap(func() {
			for i, s := range sums {
				VADDPS(f.at(i, v), s, s)
			}
		})
		for i, s := range sums {
			VDIVPS(divisor, s, s)
			VMOVUPS(s, at(f.small, i*v.bytes))
		}
	})
}

// averageBackward gives each tap its share of the gradient.
func (v *lanes) averageBackward(add bool) {
	name := "averageBackward"
	if add {
		name += "Add"
	}
	f := v.windowFunction(name, "shares gradients out")
	divisor := v.number(at(f.run, runDivisor))
	shares := v.registers(v.parts())
	f.eachPixel(func() {
		for i, s := range shares {
			VMOVUPS(at(f.small, i*v.bytes), s)
			VDIVPS(divisor, s, s)
		}
		f.eachTap(func() {
			for i, s := range shares {
				if !add {
					VMOVUPS(s, f.at(i, v))
					continue
				}
				x := v.register()
				VADDPS(f.at(i, v), s, x)
				VMOVUPS(x, f.at(i, v))
			}
		})
	})
}
