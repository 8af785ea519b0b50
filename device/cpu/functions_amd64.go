package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// The lanes of a vector of float32.
const (
	lanesAVX2   = 8
	lanesAVX512 = 16
)

// rowsAtOnce is how many rows addRows of the assembly takes.
const rowsAtOnce = 4

func functionsAVX2() functions {
	return functions{
		windowKernels: windowsAVX2(),
		tanh:          func(y, x []float32) { unary(tanhAVX2, y, x) },
		sigmoid:       func(y, x []float32) { unary(sigmoidAVX2, y, x) },
		gated: func(f device.Activation, y, x []float32) {
			unary(choose(f, geluAVX2, geluTanhAVX2, siluAVX2), y, x)
		},
		gradient: func(f device.Activation, dx, dy, saved []float32, accumulate bool) {
			if accumulate {
				ternary(choose(f, geluBackwardAddAVX2, geluTanhBackwardAddAVX2, siluBackwardAddAVX2, tanhBackwardAddAVX2, sigmoidBackwardAddAVX2), dx, dy, saved)
				return
			}
			ternary(choose(f, geluBackwardAVX2, geluTanhBackwardAVX2, siluBackwardAVX2, tanhBackwardAVX2, sigmoidBackwardAVX2), dx, dy, saved)
		},
		dropout: func(y, x []float32, scale float32, threshold uint32, seed uint64, at int) {
			n := len(x) &^ (lanesAVX2 - 1)
			if n > 0 {
				dropoutAVX2(first(y), first(x), scale, uint64(threshold), device.DropoutState(seed, at), n)
			}
			portableDropout(y[n:], x[n:], scale, threshold, seed, at+n)
		},
		shifted: func(y, x []float32, less, scale float32) {
			if len(x) > 0 {
				shiftedAVX2(first(y), first(x), less, scale, len(x))
			}
		},
		addRows: func(sums []float64, a []float32, stride, rows int) {
			rest := len(sums) &^ (lanesAVX2 - 1)
			for ; rows >= rowsAtOnce && rest > 0; rows -= rowsAtOnce {
				addRowsAVX2(&sums[0], first(a), stride*4, rest)
				portableAddRows(sums[rest:], a[rest:], stride, rowsAtOnce)
				a = a[min(rowsAtOnce*stride, len(a)):]
			}
			portableAddRows(sums, a, stride, rows)
		},
		sum:     func(x []float32) float32 { return sumAVX2(first(x), len(x)) },
		largest: func(x []float32) float32 { return largestAVX2(first(x), len(x)) },
		exponentials: func(y, x []float32, scale, offset float32) float32 {
			return exponentialsAVX2(first(y), first(x), scale, offset, len(x))
		},
		dot: func(a, b []float32) float32 { return dotAVX2(first(a), first(b), len(a)) },
		softmaxBackward: func(ds, p, dp []float32, mean, scale float32) {
			softmaxBackwardAVX2(first(ds), first(p), first(dp), mean, scale, len(p))
		},
		layerNorm: func(y, x, scale, shift []float32, epsilon float32) (mean, invstd float32) {
			n := len(x)
			guess := sumAVX2(first(x), n) / float32(n)
			sum, squares := aboutAVX2(first(x), guess, n)
			rest, invstd := rowMoments(sum, squares, n, epsilon)
			normaliseAVX2(first(y), first(x), first(scale), first(shift), guess, rest, invstd, n)
			return guess + rest, invstd
		},
		layerNormBackward: func(dx, dscale, dshift, dy, x, scale []float32, mean, invstd float32, accumulate bool) {
			n := len(x)
			sum, product := layerNormSumsAVX2(first(dscale), first(dshift), first(dy), first(x), first(scale), mean, invstd, n)
			average, slope := sum/float32(n), product/float32(n)
			switch {
			case dx == nil:
			case accumulate:
				layerNormOutputsAddAVX2(first(dx), first(dy), first(x), first(scale), mean, invstd, average, slope, n)
			default:
				layerNormOutputsAVX2(first(dx), first(dy), first(x), first(scale), mean, invstd, average, slope, n)
			}
		},
	}
}

// rowMoments returns how far the mean is from a guess about which the sums of
// deviations and of squares were taken, and 1/sqrt(variance + epsilon).
func rowMoments(sum, squares float32, n int, epsilon float32) (rest, invstd float32) {
	offset := float64(sum) / float64(n)
	variance := max(0, float64(squares)/float64(n)-float64(offset*offset))
	return float32(offset), float32(1 / math.Sqrt(variance+float64(epsilon)))
}

func unary(f func(y, x *float32, n int), y, x []float32) {
	if len(x) > 0 {
		f(first(y), first(x), len(x))
	}
}

func ternary(f func(dx, dy, x *float32, n int), dx, dy, x []float32) {
	if len(x) > 0 {
		f(first(dx), first(dy), first(x), len(x))
	}
}

// choose returns what belongs to f, in the order of gelu, geluTanh, silu, tanh,
// sigmoid.
func choose[T any](f device.Activation, kernels ...T) T {
	switch f {
	case device.GELU:
		return kernels[0]
	case device.GELUTanh:
		return kernels[1]
	case device.SiLU:
		return kernels[2]
	case device.Tanh:
		return kernels[3]
	}
	return kernels[4]
}
