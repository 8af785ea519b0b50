package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/gradfusion/gradfusion/device"
)

// fastKernels returns the AVX2 set, or what it misses.
func fastKernels() (set *kernelSet, missing string) {
	switch {
	case !cpu.X86.HasAVX2 && !cpu.X86.HasFMA:
		return nil, "AVX2 and FMA"
	case !cpu.X86.HasAVX2:
		return nil, "AVX2"
	case !cpu.X86.HasFMA:
		return nil, "FMA"
	case !cpu.X86.HasF16C:
		return nil, "F16C"
	}
	return &kernelSet{
		name:      "avx2",
		tile:      func(t *tile) { tileAVX2((*uint64)(unsafe.Pointer(t))) },
		transpose: transposeFast,

		add: func(dst, a, b []float32) { binaryFast(addAVX2, portableAdd, dst, a, b) },
		mul: func(dst, a, b []float32) { binaryFast(mulAVX2, portableMul, dst, a, b) },
		max: func(dst, a, b []float32) { binaryFast(maxAVX2, portableMax, dst, a, b) },
		min: func(dst, a, b []float32) { binaryFast(minAVX2, portableMin, dst, a, b) },

		f16:  halvesFast(widenF16AVX2, addF16AVX2, narrowF16AVX2, portableHalves(device.F16ToF32, device.F32ToF16)),
		bf16: halvesFast(widenBF16AVX2, addBF16AVX2, narrowBF16AVX2, portableHalves(device.BF16ToF32, device.F32ToBF16)),

		scale: func(dst, a []float32, s float32) {
			n := whole(a)
			scaleAVX2(first(dst), first(a), s, n)
			portableScale(dst[n:], a[n:], s)
		},
		relu: func(y, x []float32) {
			n := whole(x)
			reluAVX2(first(y), first(x), n)
			portableReLU(y[n:], x[n:])
		},
		reluBackward:    func(dx, dy, y []float32) { binaryFast(reluBackwardAVX2, portableReLUBackward, dx, dy, y) },
		reluBackwardAdd: func(dx, dy, y []float32) { binaryFast(reluBackwardAddAVX2, portableReLUBackwardAdd, dx, dy, y) },

		sgd:         sgdFast,
		sgdMomentum: sgdMomentumFast,
		adam:        adamFast,
		sumSquares: func(out []float64, x []float32) {
			if len(out) > 0 {
				sumSquaresAVX2(&out[0], first(x), len(out))
			}
		},

		momentsOf:           momentsFast,
		normForward:         normForwardFast,
		normBackwardSums:    normBackwardSumsFast,
		normBackwardOutputs: normBackwardOutputsFast,
	}, ""
}
