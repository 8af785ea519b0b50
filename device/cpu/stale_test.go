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
				d := device.Conv{N: 1 + random.IntN(17), C: 1 + random.IntN(70), H: 1 + random.IntN(9), W: 1 + random.IntN(9), K: 1 + random.IntN(70),
					R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
				x, w, dy := normals(random, d.XLen()), normals(random, d.WeightLen()), normals(random, d.YLen())
				run := func(k device.Kernels, before func()) [3][]float32 {
					y, dx, dw := make([]float32, d.YLen()), make([]float32, d.XLen()), make([]float32, d.WeightLen())
					before()
					k.ConvForward(d, device.FromF32(y), device.FromF32(x), device.FromF32(w), device.Buf{})
					before()
					k.ConvBackwardInput(d, device.FromF32(dx), device.FromF32(dy), device.FromF32(w))
					before()
					k.ConvBackwardWeight(d, device.FromF32(dw), device.FromF32(x), device.FromF32(dy))
					return [3][]float32{y, dx, dw}
				}
				want := run(open(t, cpu.Config{Kernels: set, Conv: method}).Kernels(), func() {})
				got := run(dirty.Kernels(), func() { stale(dirty.Kernels(), random) })
				for i, name := range []string{"output", "gradient of the input", "gradient of the weights"} {
					require.Equal(t, fmt.Sprint(want[i]), fmt.Sprint(got[i]), "%s, %s, seed %d: %s of %+v", set, method, seed, name, d)
				}
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
