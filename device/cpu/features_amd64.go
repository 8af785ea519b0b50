package cpu

import (
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/gradfusion/gradfusion/device"
)

// fastKernels returns the sets of amd64.
func fastKernels() []candidate {
	x := &cpu.X86
	avx2 := lacks(feature{"AVX2", x.HasAVX2}, feature{"FMA", x.HasFMA}, feature{"F16C", x.HasF16C})
	avx512 := lacks(
		feature{"AVX-512F", x.HasAVX512F}, feature{"AVX-512DQ", x.HasAVX512DQ},
		feature{"AVX-512BW", x.HasAVX512BW}, feature{"AVX-512VL", x.HasAVX512VL},
	)
	if avx512 == "" {
		avx512 = avx2 // what it has no kernels of its own for
	}
	amx := lacks(feature{"AMX-TILE", x.HasAMXTile}, feature{"AMX-BF16", x.HasAMXBF16})
	if avx512 != "" {
		amx = avx512
	}
	if amx == "" && !allowAMX() {
		amx = "AMX to be allowed by the system"
	}
	return []candidate{{"amx", amx, amxKernels}, {"avx512", avx512, avx512Kernels}, {"avx2", avx2, avx2Kernels}}
}

type feature struct {
	name string
	has  bool
}

// lacks names what is missing: "AVX2 and FMA".
func lacks(features ...feature) string {
	var missing []string
	for _, f := range features {
		if !f.has {
			missing = append(missing, f.name)
		}
	}
	if n := len(missing); n > 1 {
		missing = append(missing[:n-2], missing[n-2]+" and "+missing[n-1])
	}
	return strings.Join(missing, ", ")
}

// avx512Kernels are those of AVX2 where wider vectors are not faster.
func avx512Kernels() *kernelSet {
	set := avx2Kernels()
	set.name = "avx512"
	set.functions = functionsAVX512()
	set.tile = func(t *tile) { t.each(2, rowsAVX512, tileWide) }
	set.winogradKernels, set.windowKernels = winogradsAVX512(), windowsAVX512()
	set.depth, set.turnsProducts = 2048, true
	set.f16 = halvesWide(widenF16AVX512, narrowF16AVX512, set.f16)
	set.bf16 = halvesWide(widenBF16AVX512, narrowBF16AVX512, set.bf16)
	set.transpose, set.lines, set.turn = transposeWide, linesWide, turnWide
	return set
}

func avx2Kernels() *kernelSet {
	return &kernelSet{
		name:      "avx2",
		functions: functionsAVX2(),
		tile:      func(t *tile) { t.each(1, rowsAVX2, tileNarrow) },
		depth:     512,
		transpose: transposeFast,

		untranspose:     untransposeFast,
		apart:           apartFast,
		winogradKernels: winogradsAVX2(),
		windowKernels:   windowsAVX2(),
		layerKernels:    layersAVX2(),

		lines: portableLines, turn: portableTurn,

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
	}
}
