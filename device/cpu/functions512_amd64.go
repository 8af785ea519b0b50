package cpu

import "github.com/gradfusion/gradfusion/device"

func functionsAVX512() functions {
	return functions{
		windowKernels: windowsAVX512(),
		tanh:          func(y, x []float32) { unary(tanhAVX512, y, x) },
		sigmoid:       func(y, x []float32) { unary(sigmoidAVX512, y, x) },
		gated: func(f device.Activation, y, x []float32) {
			unary(choose(f, geluAVX512, geluTanhAVX512, siluAVX512), y, x)
		},
		gradient: func(f device.Activation, dx, dy, saved []float32, accumulate bool) {
			if accumulate {
				ternary(choose(f, geluBackwardAddAVX512, geluTanhBackwardAddAVX512, siluBackwardAddAVX512, tanhBackwardAddAVX512, sigmoidBackwardAddAVX512), dx, dy, saved)
				return
			}
			ternary(choose(f, geluBackwardAVX512, geluTanhBackwardAVX512, siluBackwardAVX512, tanhBackwardAVX512, sigmoidBackwardAVX512), dx, dy, saved)
		},
		dropout: func(y, x []float32, scale float32, threshold uint32, seed uint64, at int) {
			n := len(x) &^ (lanesAVX512 - 1)
			if n > 0 {
				dropoutAVX512(first(y), first(x), scale, uint64(threshold), device.DropoutState(seed, at), n)
			}
			portableDropout(y[n:], x[n:], scale, threshold, seed, at+n)
		},
		shifted: func(y, x []float32, less, scale float32) {
			if len(x) > 0 {
				shiftedAVX512(first(y), first(x), less, scale, len(x))
			}
		},
		addRows: func(sums []float64, a []float32, stride, rows int) {
			rest := len(sums) &^ (lanesAVX512 - 1)
			for ; rows >= rowsAtOnce && rest > 0; rows -= rowsAtOnce {
				addRowsAVX512(&sums[0], first(a), stride*4, rest)
				portableAddRows(sums[rest:], a[rest:], stride, rowsAtOnce)
				a = a[min(rowsAtOnce*stride, len(a)):]
			}
			portableAddRows(sums, a, stride, rows)
		},
		sum:     func(x []float32) float32 { return sumAVX512(first(x), len(x)) },
		largest: func(x []float32) float32 { return largestAVX512(first(x), len(x)) },
		exponentials: func(y, x []float32, scale, offset float32) float32 {
			return exponentialsAVX512(first(y), first(x), scale, offset, len(x))
		},
		dot: func(a, b []float32) float32 { return dotAVX512(first(a), first(b), len(a)) },
		softmaxBackward: func(ds, p, dp []float32, mean, scale float32) {
			softmaxBackwardAVX512(first(ds), first(p), first(dp), mean, scale, len(p))
		},
		layerNorm: func(y, x, scale, shift []float32, epsilon float32) (mean, invstd float32) {
			n := len(x)
			guess := sumAVX512(first(x), n) / float32(n)
			sum, squares := aboutAVX512(first(x), guess, n)
			rest, invstd := rowMoments(sum, squares, n, epsilon)
			normaliseAVX512(first(y), first(x), first(scale), first(shift), guess, rest, invstd, n)
			return guess + rest, invstd
		},
		layerNormBackward: func(dx, dscale, dshift, dy, x, scale []float32, mean, invstd float32, accumulate bool) {
			n := len(x)
			sum, product := layerNormSumsAVX512(first(dscale), first(dshift), first(dy), first(x), first(scale), mean, invstd, n)
			average, slope := sum/float32(n), product/float32(n)
			switch {
			case dx == nil:
			case accumulate:
				layerNormOutputsAddAVX512(first(dx), first(dy), first(x), first(scale), mean, invstd, average, slope, n)
			default:
				layerNormOutputsAVX512(first(dx), first(dy), first(x), first(scale), mean, invstd, average, slope, n)
			}
		},
	}
}
