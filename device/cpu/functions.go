package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// functions are the entries of a kernelSet that approximate functions or fold
// rows. Their bits belong to the set: the portable ones go through float64.
// Within a set an element, or a row, has the same bits wherever it stands.
type functions struct {
	tanh, sigmoid func(y, x []float32)
	// gated sets y = x * gate(x) for the activations that save their input.
	gated func(f device.Activation, y, x []float32)
	// gradient sets or adds to dx dy times the derivative of f, for those of the
	// activations that are not made of straight lines. saved is x for the gated
	// ones, y for the others, which give the same bits in every set.
	gradient func(f device.Activation, dx, dy, saved []float32, accumulate bool)
	// dropout takes x as the elements from index at on: the same bits everywhere.
	dropout func(y, x []float32, scale float32, threshold uint32, seed uint64, at int)
	// shifted sets y = (x - less) * scale: the same bits everywhere.
	shifted func(y, x []float32, less, scale float32)
	// addRows adds rows of a, stride floats apart, to sums, one after the other:
	// the same bits everywhere.
	addRows func(sums []float64, a []float32, stride, rows int)
	// sum returns the sum of a row that is not empty.
	sum func(x []float32) float32

	// largest returns the maximum of a row that is not empty; NaN is passed over
	// or returned.
	largest func(x []float32) float32
	// exponentials sets y = exp(x*scale - offset) and returns the sum of y.
	exponentials func(y, x []float32, scale, offset float32) float32
	// dot returns the sum of a*b.
	dot func(a, b []float32) float32
	// softmaxBackward sets ds = p * (dp - mean) * scale.
	softmaxBackward func(ds, p, dp []float32, mean, scale float32)

	// layerNorm normalises one row.
	layerNorm func(y, x, scale, shift []float32, epsilon float32) (mean, invstd float32)
	// layerNormBackward adds to dscale and dshift, and sets or adds to dx, which
	// may be nil, for one row.
	layerNormBackward func(dx, dscale, dshift, dy, x, scale []float32, mean, invstd float32, accumulate bool)
}

func portableFunctions() functions {
	return functions{
		tanh:              portableTanh,
		sigmoid:           portableSigmoid,
		gated:             portableGated,
		gradient:          portableGradient,
		dropout:           portableDropout,
		shifted:           portableShifted,
		addRows:           portableAddRows,
		sum:               portableSum,
		largest:           portableLargest,
		exponentials:      portableExponentials,
		dot:               portableDot,
		softmaxBackward:   portableSoftmaxBackward,
		layerNorm:         portableLayerNorm,
		layerNormBackward: portableLayerNormBackward,
	}
}

// gate returns what an activation of the form x * gate(x) multiplies x by, and
// its derivative.
func gate(f device.Activation, x float64) (value, slope float64) {
	if f == device.GELU {
		return math.Erfc(-x/math.Sqrt2) / 2, math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	}
	argument, inner := x, 1.0
	if f == device.GELUTanh {
		k := 2 * math.Sqrt(2/math.Pi)
		argument, inner = k*(x+float64(0.044715*x*x*x)), k*(1+float64(3*0.044715*x*x))
	}
	value = 1 / (1 + math.Exp(-argument))
	return value, value * (1 - value) * inner
}

func portableTanh(y, x []float32) {
	for i, v := range x {
		y[i] = float32(math.Tanh(float64(v)))
	}
}

func portableSigmoid(y, x []float32) {
	for i, v := range x {
		y[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

// gateLeast is where every gate is 0: below it -infinity would make NaN.
const gateLeast = -1000

func portableGated(f device.Activation, y, x []float32) {
	for i, v := range x {
		x := max(gateLeast, float64(v))
		value, _ := gate(f, x)
		y[i] = float32(x * value)
	}
}

func portableGradient(f device.Activation, dx, dy, saved []float32, accumulate bool) {
	for i, g := range dy {
		switch v := saved[i]; f {
		case device.Tanh:
			g *= 1 - float32(v*v)
		case device.Sigmoid:
			g *= float32((1 - v) * v)
		default:
			// Beyond 64 the slope is 0, and must not meet infinity.
			x := max(-64, min(64, float64(v)))
			value, slope := gate(f, x)
			g = float32(float64(g) * (value + float64(x*slope)))
		}
		if accumulate {
			g += dx[i]
		}
		dx[i] = g
	}
}

func portableDropout(y, x []float32, scale float32, threshold uint32, seed uint64, at int) {
	for i, v := range x {
		v *= scale
		if device.DropoutBits(seed, at+i) < threshold {
			v = 0
		}
		y[i] = v
	}
}

func portableShifted(y, x []float32, less, scale float32) {
	for i, v := range x {
		y[i] = (v - less) * scale
	}
}

func portableAddRows(sums []float64, a []float32, stride, rows int) {
	for i := range rows {
		for j, v := range a[i*stride:][:len(sums)] {
			sums[j] += float64(v)
		}
	}
}

func portableSum(x []float32) float32 {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	return float32(sum)
}

func portableLargest(x []float32) float32 {
	largest := x[0]
	for _, v := range x {
		if v > largest {
			largest = v
		}
	}
	return largest
}

func portableExponentials(y, x []float32, scale, offset float32) float32 {
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(float64(v)*float64(scale)) - float64(offset))
		sum += e
		y[i] = float32(e)
	}
	return float32(sum)
}

func portableDot(a, b []float32) float32 {
	var sum float64
	for i, v := range a {
		sum += float64(float64(v) * float64(b[i]))
	}
	return float32(sum)
}

func portableSoftmaxBackward(ds, p, dp []float32, mean, scale float32) {
	for i, v := range p {
		ds[i] = v * (dp[i] - mean) * scale
	}
}

func portableLayerNorm(y, x, scale, shift []float32, epsilon float32) (mean, invstd float32) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	average := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - average
		squares += float64(d * d)
	}
	mean = float32(average)
	invstd = float32(1 / math.Sqrt(squares/float64(len(x))+float64(epsilon)))
	for i, v := range x {
		normal := float32(float64(v)-average) * invstd
		y[i] = float32(normal*scale[i]) + shift[i]
	}
	return mean, invstd
}

func portableLayerNormBackward(dx, dscale, dshift, dy, x, scale []float32, mean, invstd float32, accumulate bool) {
	var sum, product float64
	for i, g := range dy {
		normal := (x[i] - mean) * invstd
		dscale[i] += float32(g * normal)
		dshift[i] += g
		g *= scale[i]
		sum += float64(g)
		product += float64(float64(g) * float64(normal))
	}
	if dx == nil {
		return
	}
	average, slope := float32(sum/float64(len(dy))), float32(product/float64(len(dy)))
	for i, g := range dy {
		normal := (x[i] - mean) * invstd
		g = float32(invstd * ((float32(g*scale[i]) - average) - float32(normal*slope)))
		if accumulate {
			g += dx[i]
		}
		dx[i] = g
	}
}
