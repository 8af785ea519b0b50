package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// forEachSet runs f for every kernel set that this machine can run.
func forEachSet(t *testing.T, f func(t *testing.T, set *kernelSet)) {
	for _, c := range candidates() {
		if c.lacks == "" {
			t.Run(c.name, func(t *testing.T) { f(t, c.build()) })
		}
	}
}

// sweep is numbers of both signs from 2^-149 to 128, dense where functions bend,
// and what is not a number.
func sweep() []float32 {
	x := []float32{
		0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32,
	}
	for e := -149.0; e < 7; e += 0.37 {
		x = append(x, float32(math.Exp2(e)), -float32(math.Exp2(e)))
	}
	for i := -110000; i < 110000; i += 7 {
		x = append(x, float32(i)/1000)
	}
	return x
}

func exponential(set *kernelSet) func(y, x []float32) {
	return func(y, x []float32) { set.exponentials(y, x, 1, 0) }
}

func derivative(set *kernelSet, f device.Activation) func(y, x []float32) {
	return func(y, x []float32) {
		ones := make([]float32, len(x))
		for i := range ones {
			ones[i] = 1
		}
		set.gradient(f, y, ones, x, false)
	}
}

func forward(set *kernelSet, f device.Activation) func(y, x []float32) {
	return func(y, x []float32) { set.gated(f, y, x) }
}

// TestFunctionErrors compares with float64. The bounds are what the kernels
// promise: relative ones where no difference cancels, absolute ones for what is
// x times a share (PyTorch's float32 formulas cancel there as well).
func TestFunctionErrors(t *testing.T) {
	type function = func(y, x []float32)
	forEachSet(t, func(t *testing.T, set *kernelSet) {
		for _, c := range []struct {
			name               string
			f                  function
			want               func(float64) float64
			relative, absolute float64
		}{
			{"exp", exponential(set), math.Exp, 1.5e-7, 0},
			{"tanh", set.tanh, math.Tanh, 3e-7, 0},
			{"sigmoid", set.sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.5e-7, 3e-39}, // 0 where exp(-x) overflows
			{"gelu", forward(set, device.GELU), func(x float64) float64 { return math.Max(x, -1000) * portion(device.GELU, x) }, 2.5e-7, 8e-7},
			{"gelu by tanh", forward(set, device.GELUTanh), func(x float64) float64 { return math.Max(x, -1000) * portion(device.GELUTanh, x) }, 3e-7, 2e-7},
			{"silu", forward(set, device.SiLU), func(x float64) float64 { return math.Max(x, -1000) * portion(device.SiLU, x) }, 3e-7, 1e-36},
			{"gelu'", derivative(set, device.GELU), slopeOf(device.GELU), 0, 6e-7},
			{"gelu by tanh'", derivative(set, device.GELUTanh), slopeOf(device.GELUTanh), 0, 6e-7},
			{"silu'", derivative(set, device.SiLU), slopeOf(device.SiLU), 0, 3e-7},
		} {
			x := sweep()
			y := make([]float32, len(x))
			c.f(y, x)
			worst, at := 0.0, float32(0)
			for i, v := range x {
				want := c.want(float64(v))
				if want != want || math.IsInf(float64(float32(want)), 0) {
					require.Equal(t, math.IsNaN(want), math.IsNaN(float64(y[i])), "%s(%g) is %g", c.name, v, y[i])
					require.Equal(t, float64(float32(want)) == float64(y[i]), want == want, "%s(%g) is %g", c.name, v, y[i])
					continue
				}
				// Subnormal results are rounded to their steps.
				excess := math.Abs(float64(y[i])-want) / (c.relative*math.Abs(want) + c.absolute + 1.01*math.SmallestNonzeroFloat32)
				if excess != excess || excess > worst {
					worst, at = excess, v
				}
			}
			require.LessOrEqual(t, worst, 1.0, "%s at %g", c.name, at)
			t.Logf("%-14s %.2f of its bound at %g", c.name, worst, at)
		}
	})
}

// portion is what an activation multiplies x by, by other formulas than gate.
func portion(f device.Activation, x float64) float64 {
	switch f {
	case device.GELU:
		return 0.5 * math.Erfc(-x/math.Sqrt2)
	case device.GELUTanh:
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		if u < 0 {
			return math.Exp(u) / (2 * math.Cosh(u))
		}
		return 0.5 * (1 + math.Tanh(u))
	}
	return 1 / (1 + math.Exp(-x))
}

// slopeOf differentiates x times portion by a central difference.
func slopeOf(f device.Activation) func(float64) float64 {
	return func(x float64) float64 {
		if math.Abs(x) > 50 {
			return math.Max(0, math.Copysign(1, x))
		}
		const h = 1e-4
		at := func(x float64) float64 { return x * portion(f, x) }
		return (8*(at(x+h)-at(x-h)) - (at(x+2*h) - at(x-2*h))) / (12 * h)
	}
}

// TestTanhStaysWithinOne for its derivative 1 - y^2.
func TestTanhStaysWithinOne(t *testing.T) {
	forEachSet(t, func(t *testing.T, set *kernelSet) {
		var x []float32
		for v := float32(6); v < 10; v += 1e-4 {
			x = append(x, v, -v)
		}
		y := make([]float32, len(x))
		set.tanh(y, x)
		for i, v := range y {
			require.LessOrEqual(t, math.Abs(float64(v)), 1.0, "tanh(%g)", x[i])
		}
	})
}

// TestElementsDoNotDependOnTheirPlace computes vectors of every length and
// compares each element with itself alone.
func TestElementsDoNotDependOnTheirPlace(t *testing.T) {
	forEachSet(t, func(t *testing.T, set *kernelSet) {
		functions := []func(y, x []float32){
			exponential(set), set.tanh, set.sigmoid,
			func(y, x []float32) { set.shifted(y, x, 0.3, 1.7) },
		}
		for f := device.Tanh; f <= device.SiLU; f++ {
			functions = append(functions, derivative(set, f))
			if f.SavesInput() {
				functions = append(functions, forward(set, f))
			}
		}
		x := make([]float32, 77)
		for i := range x {
			x[i] = float32(math.Sin(float64(i)*12.3)) * 6
		}
		for i, f := range functions {
			alone := make([]float32, len(x))
			for k := range x {
				f(alone[k:k+1], x[k:k+1])
			}
			for n := range x {
				y := make([]float32, n+1)
				y[n] = 77
				f(y[:n], x[:n])
				require.Equal(t, append(append([]float32(nil), alone[:n]...), 77), y, "function %d of %d elements", i, n)
			}
		}
	})
}

// TestFoldsOfEveryLength holds the folds against float64: sums of up to 100
// numbers below 2.
func TestFoldsOfEveryLength(t *testing.T) {
	forEachSet(t, func(t *testing.T, set *kernelSet) {
		for n := 1; n < 100; n++ {
			a, b, y := make([]float32, n), make([]float32, n), make([]float32, n)
			var sum, product, exponentials float64
			largest := float32(math.Inf(-1))
			for i := range a {
				a[i], b[i] = -1-float32(math.Sin(float64(i*n))), float32(math.Cos(float64(i)))
				sum += float64(a[i])
				product += float64(a[i]) * float64(b[i])
				exponentials += math.Exp(float64(a[i])*3 + 1)
				largest = max(largest, a[i])
			}
			require.InDelta(t, sum, set.sum(a), 1e-5)
			require.InDelta(t, product, set.dot(a, b), 1e-5)
			require.Equal(t, largest, set.largest(a))
			require.InEpsilon(t, exponentials, set.exponentials(y, a, 3, -1), 1e-6)
		}
		require.Zero(t, set.dot(nil, nil))
		require.Zero(t, set.exponentials(nil, nil, 1, 0))
	})
}
