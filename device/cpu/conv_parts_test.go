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
