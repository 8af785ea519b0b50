package cpu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// TestWinogradBits: the bits of shapes that take the ways for many channels depend
// neither on threads nor on whether tensors are stored as halves, but for the
// rounding of what is stored.
func TestWinogradBits(t *testing.T) {
	shapes := []device.Conv{
		{N: 3, C: 256, H: 5, W: 6, K: 144},
		{N: 7, C: 256, H: 5, W: 6, K: 144},
		{N: 5, C: 120, H: 16, W: 16, K: 120},
		{N: 16, C: 128, H: 1, W: 40, K: 128},
		{N: 70, C: 128, H: 2, W: 2, K: 144},
	}
	if !bestTransforms(t) {
		shapes = shapes[:1] // all of them go the one way that there is
	}
	for _, d := range shapes {
		d.R, d.S, d.StrideH, d.StrideW, d.PadH, d.PadW, d.XLayout = 3, 3, 1, 1, 1, 1, device.Blocked16
		d.Accumulate = true
		want := roundedPasses(open(t, cpu.Config{Threads: 1}).Kernels(), d, false)
		for _, threads := range []int{1, 3} {
			k := open(t, cpu.Config{Threads: threads}).Kernels()
			for _, halves := range []bool{false, true} {
				require.Equal(t, want, roundedPasses(k, d, halves), "%+v, %d threads, halves %v", d, threads, halves)
			}
		}
	}
}

// roundedPasses are passes of numbers that bfloat16 has, stored as such or not; it
// returns what is stored as bfloat16, and gradients of weights as they are.
func roundedPasses(k device.Kernels, d device.Conv, halves bool) map[string]any {
	random := rand.New(rand.NewPCG(3, 4))
	numbers := func(n, channels, pixels int) device.Buf {
		rounded, whole := make([]uint16, n), make([]float32, n)
		for i := range rounded {
			if i/(pixels*device.Block)%device.Blocks(channels)*device.Block+i%device.Block < channels {
				rounded[i] = device.F32ToBF16(float32(random.NormFloat64()))
				whole[i] = device.BF16ToF32(rounded[i])
			}
		}
		if halves {
			b := device.FromBytes(device.BF16, make([]byte, 2*n))
			copy(b.U16(), rounded)
			return b
		}
		return device.FromF32(whole)
	}
	stored := func(b device.Buf) []uint16 {
		if halves {
			return b.U16()
		}
		out := make([]uint16, b.Len)
		for i, v := range b.F32() {
			out[i] = device.F32ToBF16(v)
		}
		return out
	}
	x, dx := numbers(d.XLen(), d.C, d.H*d.W), numbers(d.XLen(), d.C, d.H*d.W)
	dy, y := numbers(d.YLen(), d.K, d.OutH()*d.OutW()), numbers(d.YLen(), d.K, d.OutH()*d.OutW())
	w := numbers(d.WeightLen(), d.WeightLen(), 1)
	bias, dw := device.FromF32(make([]float32, d.K)), device.FromF32(make([]float32, d.WeightLen()))
	k.ConvForward(d, y, x, w, bias)
	k.ConvBackwardInput(d, dx, dy, w)
	k.ConvBackwardWeight(d, dw, x, dy)
	return map[string]any{"forward": stored(y), "input": stored(dx), "weight": dw.F32()}
}
