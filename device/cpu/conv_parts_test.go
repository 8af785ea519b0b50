package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
)

// The channels beside one whose weight is none have the same bits whatever the
// number of threads, and that one has NaN only.
func TestConvolutionWithNaN(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d := device.Conv{N: 1, C: 256, H: 10, W: 10, K: 128, R: 1, S: 1, StrideH: 1, StrideW: 1, XLayout: device.Blocked16}
	x, w := make([]float32, d.XLen()), make([]float32, d.WeightLen())
	for _, s := range [][]float32{x, w} {
		for i := range s {
			s[i] = random.Float32() - 0.5
		}
	}
	const channel = 37
	w[channel*d.C+5] = float32(math.NaN())
	forward := func(threads int) (bits []string) {
		y := make([]float32, d.YLen())
		k := open(t, cpu.Config{Threads: threads, Conv: "direct"}).Kernels()
		k.ConvForward(d, device.FromF32(y), device.FromF32(x), device.FromF32(w), device.Buf{})
		for i, v := range y {
			none := i/(d.OutH()*d.OutW()*device.Block) == channel/device.Block && i%device.Block == channel%device.Block
			require.Equal(t, none, v != v, "element %d", i)
			bits = append(bits, fmt.Sprintf("%x", math.Float32bits(v)))
		}
		return bits
	}
	one := forward(1)
	for _, threads := range []int{2, 3, 8} {
		require.Equal(t, one, forward(threads), "%d threads", threads)
	}
}

// TestTinyNumbers: numbers beside which others are as good as zero do no harm to those,
// in convolutions and products of all kernels.
func TestTinyNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	mixed := func(n int) []float32 {
		s := normals(random, n)
		for i := range s {
			if random.IntN(4) == 0 {
				s[i] = math.Float32frombits(random.Uint32N(1 << 28)) // below 2^-94, denormal ones too
			}
		}
		return s
	}
	d := device.Conv{N: 16, C: 32, H: 6, W: 6, K: 64, R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	x, w, dy := mixed(d.XLen()), mixed(d.WeightLen()), mixed(d.YLen())
	m := device.MatMul{M: 192, N: 160, K: 256}
	a, b := mixed(m.M*m.K), mixed(m.K*m.N)
	run := func(k device.Kernels) [4][]float32 {
		y, dx, dw, c := make([]float32, d.YLen()), make([]float32, d.XLen()), make([]float32, d.WeightLen()), make([]float32, m.M*m.N)
		k.ConvForward(d, device.FromF32(y), device.FromF32(x), device.FromF32(w), device.Buf{})
		k.ConvBackwardInput(d, device.FromF32(dx), device.FromF32(dy), device.FromF32(w))
		k.ConvBackwardWeight(d, device.FromF32(dw), device.FromF32(x), device.FromF32(dy))
		k.MatMul(m, device.FromF32(c), device.FromF32(a), device.FromF32(b), device.Buf{})
		return [4][]float32{y, dx, dw, c}
	}
	want := run(naive.New().Kernels())
	for _, set := range sets(t) {
		methods := []string{"direct", "winograd4"}
		if !transforms(set) {
			methods = methods[:1]
		}
		for _, method := range methods {
			for i, got := range run(open(t, cpu.Config{Kernels: set, Conv: method}).Kernels()) {
				var square float64
				for _, v := range want[i] {
					square += float64(v) * float64(v)
				}
				rms := math.Sqrt(square / float64(len(got)))
				for j := range got {
					require.InDelta(t, want[i][j], got[j], 1e-4*rms, "%s, %s: element %d of result %d", set, method, j, i)
				}
			}
		}
	}
}
