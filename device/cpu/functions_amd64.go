package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// functionAssembly is what one instruction set has behind functions. Its kernels
// take n elements, which is above 0, but those of dropout and addRows only whole
// vectors of lanes.
type functionAssembly struct {
	lanes int

	tanh, sigmoid         func(y, x *float32, n int)
	gated                 [3]func(y, x *float32, n int)          // GELU, GELUTanh, SiLU
	gradient, gradientAdd [5]func(dx, dy, saved *float32, n int) // of these, and Tanh, Sigmoid
	dropout               func(y, x *float32, scale float32, threshold, state uint64, n int)
	shifted               func(y, x *float32, less, scale float32, n int)
	addRows               func(sums *float64, a *float32, stride, n int) // of rowsAtOnce
	sum, largest          func(x *float32, n int) float32
	exponentials          func(y, x *float32, scale, offset float32, n int) float32
	dot                   func(a, b *float32, n int) float32
	softmaxBackward       func(ds, p, dp *float32, mean, scale float32, n int)

	about                               func(x *float32, guess float32, n int) (sum, squares float32)
	normalise                           func(y, x, scale, shift *float32, guess, rest, invstd float32, n int)
	backwardSums                        func(dscale, dshift, dy, x, scale *float32, mean, invstd float32, n int) (sum, product float32)
	backwardOutputs, backwardOutputsAdd func(dx, dy, x, scale *float32, mean, invstd, average, slope float32, n int)
}

// rowsAtOnce is how many rows addRows of the assembly takes.
const rowsAtOnce = 4

// functions returns the entries of a kernelSet.
func (a *functionAssembly) functions() functions {
	return functions{
		tanh:     func(y, x []float32) { unary(a.tanh, y, x) },
		sigmoid:  func(y, x []float32) { unary(a.sigmoid, y, x) },
		gated:    func(f device.Activation, y, x []float32) { unary(a.gated[place(f)], y, x) },
		gradient: a.differentiate,
		dropout:  a.drop,
		shifted: func(y, x []float32, less, scale float32) {
			if len(x) > 0 {
				a.shifted(first(y), first(x), less, scale, len(x))
			}
		},
		addRows: a.sumColumns,
		sum:     func(x []float32) float32 { return a.sum(first(x), len(x)) },
		largest: func(x []float32) float32 { return a.largest(first(x), len(x)) },
		exponentials: func(y, x []float32, scale, offset float32) float32 {
			return a.exponentials(first(y), first(x), scale, offset, len(x))
		},
		dot: func(x, y []float32) float32 { return a.dot(first(x), first(y), len(x)) },
		softmaxBackward: func(ds, p, dp []float32, mean, scale float32) {
			a.softmaxBackward(first(ds), first(p), first(dp), mean, scale, len(p))
		},
		layerNorm:         a.normaliseRow,
		layerNormBackward: a.normaliseRowBackward,
	}
}

// place returns where the kernels of f stand in gated and gradient.
func place(f device.Activation) int {
	switch f {
	case device.GELU:
		return 0
	case device.GELUTanh:
		return 1
	case device.SiLU:
		return 2
	case device.Tanh:
		return 3
	}
	return 4
}

func unary(f func(y, x *float32, n int), y, x []float32) {
	if len(x) > 0 {
		f(first(y), first(x), len(x))
	}
}

func (a *functionAssembly) differentiate(f device.Activation, dx, dy, saved []float32, accumulate bool) {
	kernels := &a.gradient
	if accumulate {
		kernels = &a.gradientAdd
	}
	if len(dx) > 0 {
		kernels[place(f)](first(dx), first(dy), first(saved), len(dx))
	}
}

func (a *functionAssembly) drop(y, x []float32, scale float32, threshold uint32, seed uint64, at int) {
	n := len(x) &^ (a.lanes - 1)
	if n > 0 {
		a.dropout(first(y), first(x), scale, uint64(threshold), device.DropoutState(seed, at), n)
	}
	portableDropout(y[n:], x[n:], scale, threshold, seed, at+n)
}

func (a *functionAssembly) sumColumns(sums []float64, rowsOf []float32, stride, rows int) {
	whole := len(sums) &^ (a.lanes - 1)
	for ; rows >= rowsAtOnce && whole > 0; rows -= rowsAtOnce {
		a.addRows(&sums[0], first(rowsOf), stride*4, whole)
		portableAddRows(sums[whole:], rowsOf[whole:], stride, rowsAtOnce)
		rowsOf = rowsOf[min(rowsAtOnce*stride, len(rowsOf)):]
	}
	portableAddRows(sums, rowsOf, stride, rows)
}

// normaliseRow takes the moments about a first guess of the mean, so that a mean
// far from 0 costs no digits.
func (a *functionAssembly) normaliseRow(y, x, scale, shift []float32, epsilon float32) (mean, invstd float32) {
	n := len(x)
	guess := a.sum(first(x), n) / float32(n)
	sum, squares := a.about(first(x), guess, n)
	rest, invstd := rowMoments(sum, squares, n, epsilon)
	a.normalise(first(y), first(x), first(scale), first(shift), guess, rest, invstd, n)
	return guess + rest, invstd
}

// rowMoments returns how far the mean is from a guess about which the sums of
// deviations and of squares were taken, and 1/sqrt(variance + epsilon).
func rowMoments(sum, squares float32, n int, epsilon float32) (rest, invstd float32) {
	offset := float64(sum) / float64(n)
	variance := max(0, float64(squares)/float64(n)-float64(offset*offset))
	return float32(offset), float32(1 / math.Sqrt(variance+float64(epsilon)))
}

func (a *functionAssembly) normaliseRowBackward(dx, dscale, dshift, dy, x, scale []float32, mean, invstd float32, accumulate bool) {
	n := len(x)
	sum, product := a.backwardSums(first(dscale), first(dshift), first(dy), first(x), first(scale), mean, invstd, n)
	if dx == nil {
		return
	}
	outputs := a.backwardOutputs
	if accumulate {
		outputs = a.backwardOutputsAdd
	}
	outputs(first(dx), first(dy), first(x), first(scale), mean, invstd, sum/float32(n), product/float32(n), n)
}
