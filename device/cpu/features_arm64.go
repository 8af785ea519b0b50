package cpu

import "github.com/gradfusion/gradfusion/device"

// fastKernels returns the set that every arm64 processor can run.
func fastKernels() []candidate { return []candidate{{name: "neon", build: neonKernels}} }

// neonKernels returns the NEON set: every arm64 processor has NEON. What it does
// not name is portable.
func neonKernels() *kernelSet {
	set := portableKernels()
	set.name = "neon"
	set.tile = func(t *tile) { t.each(1, neonRows, neonPanel) }
	set.transpose = neonTranspose

	set.add = func(dst, a, b []float32) { binaryFast(addNEON, portableAdd, dst, a, b) }
	set.mul = func(dst, a, b []float32) { binaryFast(mulNEON, portableMul, dst, a, b) }
	set.max = func(dst, a, b []float32) { binaryFast(maxNEON, portableMax, dst, a, b) }
	set.min = func(dst, a, b []float32) { binaryFast(minNEON, portableMin, dst, a, b) }
	set.reluBackward = func(dx, dy, y []float32) { binaryFast(reluBackwardNEON, portableReLUBackward, dx, dy, y) }
	set.reluBackwardAdd = func(dx, dy, y []float32) { binaryFast(reluBackwardAddNEON, portableReLUBackwardAdd, dx, dy, y) }
	set.scale = func(dst, a []float32, s float32) {
		n := whole(a)
		scaleNEON(first(dst), first(a), s, n)
		portableScale(dst[n:], a[n:], s)
	}
	set.relu = func(y, x []float32) {
		n := whole(x)
		reluNEON(first(y), first(x), n)
		portableReLU(y[n:], x[n:])
	}

	set.f16 = halvesFast(widenF16NEON, addF16NEON, narrowF16NEON, portableHalves(device.F16ToF32, device.F32ToF16))
	set.bf16 = halvesFast(widenBF16NEON, addBF16NEON, narrowBF16NEON, portableHalves(device.BF16ToF32, device.F32ToBF16))

	set.sgd, set.sgdMomentum, set.adam = neonSGD, neonSGDMomentum, neonAdam
	set.sumSquares = func(out []float64, x []float32) {
		if len(out) > 0 {
			sumSquaresNEON(&out[0], first(x), len(out))
		}
	}

	set.momentsOf, set.normForward = neonMoments, neonNormForward
	set.normBackwardSums, set.normBackwardOutputs = neonNormBackwardSums, neonNormBackwardOutputs
	return set
}
