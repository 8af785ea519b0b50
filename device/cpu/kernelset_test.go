package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// numbers returns n numbers, the special ones among them, and as many 16-bit
// patterns.
func numbers(random *rand.Rand, n int) ([]float32, []uint16) {
	special := []float32{
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)),
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, 1e-40, 6e-8, 65519, 65520, 1, -1,
	}
	x, h := make([]float32, n), make([]uint16, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
		if random.IntN(3) == 0 {
			x[i] = special[random.IntN(len(special))]
		}
		h[i] = uint16(random.Uint32())
	}
	return x, h
}

// sameBits requires equal bits, but for the payload of a NaN, which may be that
// of either operand.
func sameBits(t *testing.T, want, got []float32, label string, n int) {
	t.Helper()
	for i, v := range want {
		if math.Float32bits(v) != math.Float32bits(got[i]) && (v == v || got[i] == got[i]) {
			t.Fatalf("%s of %d: element %d is %v (%#x), want %v (%#x)", label, n, i, got[i], math.Float32bits(got[i]), v, math.Float32bits(v))
		}
	}
}

// TestFirstMomentum compares the first step, which goes the way of the others, with
// what it is: infinities, numbers that are none and both zeros included, whatever
// the momentum was.
func TestFirstMomentum(t *testing.T) {
	testFirstMomentum(t, portableKernels())
	eachFast(t, testFirstMomentum)
}

func testFirstMomentum(t *testing.T, set *kernelSet) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 7, 8, 33, 4095, 4096, 4097, 10000} {
		for _, nesterov := range []bool{false, true} {
			for _, p := range []sgdNumbers{{scale: 1, rate: 0.1, momentum: 0.9, keep: 1}, {scale: 0.5, decay: 0.01, rate: 0.1, momentum: 0.9, keep: 0.7}} {
				p.nesterov = nesterov
				grad, _ := numbers(random, n)
				w, _ := numbers(random, n)
				m, _ := numbers(random, n)
				wantW, wantM := slices.Clone(w), slices.Clone(m)
				portableFirstMomentum(wantW, grad, wantM, &p)
				set.firstMomentum(w, grad, m, &p)
				sameBits(t, wantW, w, "weights", n)
				sameBits(t, wantM, m, "momentum", n)
			}
		}
	}
}

// TestVectors compares every element-wise entry with the portable one at
// every length about a vector, the outputs of one being the inputs of the next.
func TestVectors(t *testing.T) { eachFast(t, testVectors) }

func testVectors(t *testing.T, fast *kernelSet) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 41 {
		for range 8 {
			a, h := numbers(random, n)
			b, _ := numbers(random, n)
			c, _ := numbers(random, n)
			for name, want := range everyVector(portableKernels(), a, b, c, h) {
				sameBits(t, want, everyVector(fast, a, b, c, h)[name], name, n)
			}
		}
	}
}

func everyVector(set *kernelSet, a, b, c []float32, h []uint16) map[string][]float32 {
	out := map[string][]float32{}
	run := func(name string, f func(dst []float32)) {
		dst := append([]float32(nil), c...)
		f(dst)
		out[name] = dst
	}
	for name, f := range map[string]func(dst, a, b []float32){
		"add": set.add, "mul": set.mul, "max": set.max, "min": set.min,
		"relu backward": set.reluBackward, "relu backward add": set.reluBackwardAdd,
	} {
		run(name, func(dst []float32) { f(dst, a, b) })
	}
	run("scale", func(dst []float32) { set.scale(dst, a, -1.7) })
	run("relu", func(dst []float32) { set.relu(dst, a) })
	for name, half := range map[string]halfKernels{"f16": set.f16, "bf16": set.bf16} {
		run("widen "+name, func(dst []float32) { half.widen(dst, h) })
		run("add "+name, func(dst []float32) { half.add(dst, h) })
		run("narrow "+name, func(dst []float32) {
			narrow := make([]uint16, len(a))
			half.narrow(narrow, a)
			for i, v := range narrow {
				dst[i] = float32(v)
			}
		})
	}
	run("sgd", func(dst []float32) { set.sgd(dst, a, &sgdNumbers{scale: 0.5, decay: 0.01, rate: 0.1}) })
	for _, nesterov := range []bool{false, true} {
		p := &sgdNumbers{scale: 0.5, decay: 0.01, rate: 0.1, momentum: 0.9, keep: 0.7, nesterov: nesterov}
		run(fmt.Sprint("momentum ", nesterov), func(dst []float32) {
			m := append([]float32(nil), b...)
			set.sgdMomentum(dst, a, m, p)
			out[fmt.Sprint("momentum itself ", nesterov)] = m
		})
	}
	run("adam", func(dst []float32) {
		m, v := append([]float32(nil), b...), append([]float32(nil), a...)
		set.adam(dst, a, m, v, &adamNumbers{0.5, 0.01, 0.999, 0.9, 0.1, 0.99, 0.01, 1.1, 1e-8, 1e-3})
		out["adam m"], out["adam v"] = m, v
	})
	return out
}

// TestTransposes turns every number of columns at two strides.
func TestTransposes(t *testing.T) { eachFast(t, testTransposes) }

func testTransposes(t *testing.T, fast *kernelSet) {
	for n := range 40 {
		for _, stride := range []int{n, n + 3} {
			src, want, got := make([]float32, 16*stride+1), make([]float32, n*device.Block+1), make([]float32, n*device.Block+1)
			for i := range src {
				src[i] = float32(i)
			}
			portableTranspose(want, src, stride, n)
			fast.transpose(got, src, stride, n)
			require.Equal(t, want, got, "%d columns", n)
		}
	}
}

func TestSumsOfSquares(t *testing.T) { eachFast(t, testSumsOfSquares) }

func testSumsOfSquares(t *testing.T, fast *kernelSet) {
	random := rand.New(rand.NewPCG(5, 6))
	for blocks := range 4 {
		x, want, got := make([]float32, blocks*device.NormBlock), make([]float64, blocks), make([]float64, blocks)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		portableSumSquares(want, x)
		fast.sumSquares(got, x)
		require.Equal(t, want, got)
	}
}

// TestNorms compares what fuses nothing to the bit, and the sums on pixels
// and means that make them exact.
func TestNorms(t *testing.T) { eachFast(t, testNorms) }

func testNorms(t *testing.T, fast *kernelSet) {
	random := rand.New(rand.NewPCG(7, 8))
	plain := portableKernels()
	draw := func(n int) []float32 {
		x, _ := numbers(random, n)
		return x
	}
	var p normNumbers
	for _, x := range []*[block]float32{&p.mean, &p.factor, &p.shift, &p.offset, &p.slope} {
		for i := range x {
			x[i] = float32(random.IntN(9) - 4)
		}
	}
	for pixels := 1; pixels <= 9; pixels++ {
		n := pixels * block
		x, dy := draw(n), draw(n)
		want, got, wantAside, gotAside := draw(n), make([]float32, n), make([]float32, n), make([]float32, n)
		copy(got, want)
		for variant := range 8 {
			var other, aside, asideToo []float32
			if variant&1 != 0 {
				other = draw(n)
			}
			plain.normForward(want, x, other, &p, variant&2 != 0)
			fast.normForward(got, x, other, &p, variant&2 != 0)
			sameBits(t, want, got, "norm forward", n)
			if variant&2 != 0 {
				aside, asideToo = wantAside, gotAside
			}
			plain.normBackwardOutputs(want, aside, dy, x, other, &p, variant&4 != 0)
			fast.normBackwardOutputs(got, asideToo, dy, x, other, &p, variant&4 != 0)
			sameBits(t, want, got, "norm backward", n)
			sameBits(t, wantAside, gotAside, "norm backward, residual", n)
		}
		whole := make([]float32, n)
		for i := range whole {
			whole[i] = float32(pixels * (random.IntN(9) - 4)) // an average is an integer
		}
		var moments, momentsToo planeMoments
		plain.momentsOf(&moments, whole)
		fast.momentsOf(&momentsToo, whole)
		if pixels&(pixels-1) == 0 { // else a set may multiply by the rounded inverse
			require.Equal(t, moments, momentsToo, "%d pixels", pixels)
		}
		for _, y := range [][]float32{nil, draw(n)} {
			var sums, sumsToo planeSums
			plain.normBackwardSums(&sums, whole, whole, y, &p)
			fast.normBackwardSums(&sumsToo, whole, whole, y, &p)
			require.Equal(t, sums, sumsToo, "%d pixels", pixels)
		}
	}
}
