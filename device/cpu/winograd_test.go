package cpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
	"github.com/gradfusion/gradfusion/device/naive"
)

// transforms reports whether a set has the methods of Winograd.
func transforms(set string) bool { return set != "portable" && set != "neon" }

// bestTransforms reports whether the set that auto takes here has them.
func bestTransforms(t *testing.T) bool {
	all := sets(t)
	return transforms(all[len(all)-1])
}

// TestWinogradOnAllShapes compares with sums in float64. A sum of a few products
// of normal numbers in float32 is off by 1e-7 of the rms; the transforms of
// 4 x 4 tiles make that some ten times as much, those of 2 x 2 less than twice.
func TestWinogradOnAllShapes(t *testing.T) {
	for _, set := range sets(t) {
		for method, bound := range map[string]float64{"auto": 5e-6, "winograd2": 2e-6, "winograd4": 5e-6} {
			if !transforms(set) {
				if method != "auto" {
					continue
				}
				bound = 2e-6
			}
			t.Run(set+"/"+method, func(t *testing.T) {
				threads := []int{1, 3}
				if testing.Short() {
					threads = threads[1:]
				}
				for _, threads := range threads {
					devicetest.Convolutions(t, open(t, cpu.Config{Kernels: set, Conv: method, Threads: threads}), bound)
				}
			})
		}
	}
}

// TestWinogradErrors holds each pass of the methods to the error that it should
// have against sums in float64, as a share of the rms: the direct sum of C x 9
// products is off by some 3e-7, tiles of 2 x 2 by as much and tiles of 4 x 4 by
// 1e-6, growing with the square root of C; gradients of weights are sums over
// all pixels, so that theirs grow with those. The bounds leave a factor of two.
func TestWinogradErrors(t *testing.T) {
	for _, d := range []device.Conv{
		{N: 3, C: 64, H: 13, W: 12, K: 48},
		{N: 1, C: 250, H: 5, W: 6, K: 264}, // more weights than fit a cache
		{N: 7, C: 256, H: 5, W: 6, K: 144}, // the same with whole blocks and a few tiles
		{N: 11, C: 96, H: 9, W: 10, K: 80}, // the same and many tiles, an odd number of panels
		{N: 6, C: 96, H: 12, W: 13, K: 96},
	} {
		d.R, d.S, d.StrideH, d.StrideW, d.PadH, d.PadW, d.XLayout = 3, 3, 1, 1, 1, 1, device.Blocked16
		d.Accumulate = true
		want := passes(naive.New().Kernels(), d)
		for _, set := range sets(t) {
			for method, bound := range map[string]float64{"direct": 2e-6, "winograd2": 1e-6, "winograd4": 2e-6} {
				dev, err := cpu.New(cpu.Config{Kernels: set, Conv: method, Threads: 2})
				if err != nil {
					require.ErrorContains(t, err, "convolutions by "+method+" are for avx2 and avx512")
					continue
				}
				for pass, got := range passes(dev.Kernels(), d) {
					e := difference(got, want[pass])
					t.Logf("%s %s %s with %d channels: %.2g", set, method, pass, d.C, e)
					require.Less(t, e, bound, "%s %s %s of %+v", set, method, pass, d)
				}
				require.NoError(t, dev.Close())
			}
		}
	}
}

// TestWinogradInTurns holds shapes with more transformed images than are made at
// once to the direct method: sums of 1,152 products, or of 24,576 for weights,
// differ by 1e-6 and 5e-6 of the rms.
func TestWinogradInTurns(t *testing.T) {
	if !bestTransforms(t) {
		return // auto is direct, and 43 GFLOP are much for an emulator
	}
	d := device.Conv{N: 24, C: 128, H: 32, W: 32, K: 128, R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	var want map[string][]float32
	for _, method := range []string{"direct", "auto"} {
		got := passes(open(t, cpu.Config{Conv: method, Threads: 2}).Kernels(), d)
		if want == nil {
			want = got
		}
		for pass, bound := range map[string]float64{"forward": 4e-6, "input": 4e-6, "weight": 1e-5} {
			require.Less(t, difference(got[pass], want[pass]), bound, pass)
		}
	}
}

// passes returns what the three passes of d make of random numbers.
func passes(k device.Kernels, d device.Conv) map[string][]float32 {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n, channels, pixels int) device.Buf {
		b := device.FromF32(make([]float32, n))
		for i := range b.F32() {
			if channels == 0 || i/(pixels*device.Block)%device.Blocks(channels)*device.Block+i%device.Block < channels {
				b.F32()[i] = float32(random.NormFloat64())
			}
		}
		return b
	}
	x, w := numbers(d.XLen(), d.C, d.H*d.W), numbers(d.WeightLen(), 0, 0)
	dy, bias := numbers(d.YLen(), d.K, d.OutH()*d.OutW()), numbers(d.K, 0, 0)
	y, dx, dw := numbers(d.YLen(), 0, 0), numbers(d.XLen(), d.C, d.H*d.W), numbers(d.WeightLen(), 0, 0)
	k.ConvForward(d, y, x, w, bias)
	k.ConvBackwardInput(d, dx, dy, w)
	k.ConvBackwardWeight(d, dw, x, dy)
	return map[string][]float32{"forward": y.F32(), "input": dx.F32(), "weight": dw.F32()}
}

// difference returns rms(got - want) / rms(want).
func difference(got, want []float32) float64 {
	var above, below float64
	for i, v := range want {
		d := float64(got[i]) - float64(v)
		above += d * d
		below += float64(v) * float64(v)
	}
	return math.Sqrt(above / below)
}
