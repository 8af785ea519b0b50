package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// stale runs kernels of every kind on numbers with arbitrary bits, NaN and
// infinities among them, which their scratch memory then holds.
func stale(k device.Kernels, random *rand.Rand) {
	wild := func(n int) device.Buf {
		s := make([]float32, n)
		for i := range s {
			s[i] = math.Float32frombits(random.Uint32() | 0x7f807f80) // two NaN of bfloat16
		}
		return device.FromF32(s)
	}
	d := device.Conv{N: 4, C: 48, H: 13, W: 13, K: 80, R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	x, y, w := wild(d.XLen()), wild(d.YLen()), wild(d.WeightLen())
	k.ConvForward(d, y, x, w, device.Buf{})
	y = wild(d.YLen())
	k.ConvBackwardInput(d, wild(d.XLen()), y, w)
	k.ConvBackwardWeight(d, wild(d.WeightLen()), x, y)
	m := device.MatMul{M: 130, N: 150, K: 170}
	k.MatMul(m, wild(m.M*m.N), wild(m.M*m.K), wild(m.K*m.N), device.Buf{})
}

// TestStaleScratch: what earlier kernels left in scratch memory changes nothing.
func TestStaleScratch(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for _, set := range sets(t) {
		methods := []string{"auto", "winograd2", "winograd4", "direct"}
		if !transforms(set) {
			methods = methods[:1]
		}
		for _, method := range methods {
			dirty := open(t, cpu.Config{Kernels: set, Conv: method})
			for range map[bool]int{true: 1, false: 6}[testing.Short()] {
				requireFresh(t, dirty.Kernels(), open(t, cpu.Config{Kernels: set, Conv: method}).Kernels(), random, fmt.Sprintf("%s, %s, seed %d", set, method, seed))
			}
		}
	}
}

// requireFresh compares kernels of a device whose scratch memory holds anything with
// those of a new one, by convolutions and products of random shapes.
func requireFresh(t *testing.T, dirty, fresh device.Kernels, random *rand.Rand, what string) {
	d := device.Conv{N: 1 + random.IntN(17), C: 1 + random.IntN(100), H: 1 + random.IntN(9), W: 1 + random.IntN(9), K: 1 + random.IntN(100),
		R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	m := device.MatMul{M: 1 + random.IntN(200), N: 1 + random.IntN(200), K: 1 + random.IntN(300), TransA: random.IntN(2) == 0, TransB: random.IntN(2) == 0}
	x, w, dy := normals(random, d.XLen()), normals(random, d.WeightLen()), normals(random, d.YLen())
	a, b := normals(random, m.M*m.K), normals(random, m.K*m.N)
	run := func(k device.Kernels, before func()) [4][]float32 {
		y, dx, dw, c := make([]float32, d.YLen()), make([]float32, d.XLen()), make([]float32, d.WeightLen()), make([]float32, m.M*m.N)
		before()
		k.ConvForward(d, device.FromF32(y), device.FromF32(x), device.FromF32(w), device.Buf{})
		before()
		k.ConvBackwardInput(d, device.FromF32(dx), device.FromF32(dy), device.FromF32(w))
		before()
		k.ConvBackwardWeight(d, device.FromF32(dw), device.FromF32(x), device.FromF32(dy))
		before()
		k.MatMul(m, device.FromF32(c), device.FromF32(a), device.FromF32(b), device.Buf{})
		return [4][]float32{y, dx, dw, c}
	}
	want, got := run(fresh, func() {}), run(dirty, func() { stale(dirty, random) })
	for i, name := range []string{"output", "gradient of the input", "gradient of the weights", "product"} {
		for j := range want[i] {
			if math.Float32bits(want[i][j]) != math.Float32bits(got[i][j]) {
				require.Failf(t, "another result", "%s: element %d of the %s: %g, want %g; %+v, %+v", what, j, name, got[i][j], want[i][j], d, m)
			}
		}
	}
}

func normals(random *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(random.NormFloat64())
	}
	return s
}
