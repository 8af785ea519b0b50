package extblas

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loops stands in for a library: plain loops with sums in float64.
func loops(p product) {
	at := func(base unsafe.Pointer, ld, i, j int, transposed bool) *float32 {
		if transposed {
			i, j = j, i
		}
		return (*float32)(unsafe.Add(base, (i*ld+j)*4))
	}
	for i := range p.m {
		for j := range p.n {
			var sum float64
			for k := range p.k {
				sum += float64(float64(*at(p.a, p.lda, i, k, p.transA)) * float64(*at(p.b, p.ldb, k, j, p.transB)))
			}
			c := at(p.c, p.ldc, i, j, false)
			if p.accumulate {
				sum += float64(*c)
			}
			*c = float32(sum)
		}
	}
}

func TestConformanceOfTheParts(t *testing.T) {
	devicetest.Run(t, func() device.Device {
		d, err := wrap(cpu.Config{}, library{name: "loops", multiply: loops})
		require.NoError(t, err)
		require.Contains(t, d.Name(), "loops+cpu(")
		return d
	})
}

// A convolution with anything that this package does not know goes to the cpu
// device: were a field added to device.Conv, its zero value is what is known.
func TestUnfoldsWhatItKnows(t *testing.T) {
	d := device.Conv{N: 1, C: 2, H: 3, W: 4, K: 6, R: 1, S: 1, StrideH: 1, StrideW: 1, XLayout: device.Blocked16, Accumulate: true}
	require.True(t, unfolds(d))
	d.DilateH, d.DilateW, d.Groups = 1, 2, 1
	require.True(t, unfolds(d))
	d.Groups = 2
	require.False(t, unfolds(d))
	require.False(t, unfolds(device.Conv{C: 2, H: 3, W: 4, K: 5}), "no images")
}

// Convolutions as package nn describes them reach the library's product: one for
// each image and pass.
func TestConvolutionsMultiply(t *testing.T) {
	var products int
	d, err := wrap(cpu.Config{}, library{name: "counted", multiply: func(p product) {
		products++
		loops(p)
	}})
	require.NoError(t, err)
	c := device.Conv{N: 3, C: 2, H: 5, W: 4, K: 6, R: 3, S: 3, StrideH: 1, StrideW: 1, DilateH: 1, DilateW: 1, XLayout: device.Blocked16}
	x, y, w := device.FromF32(make([]float32, c.XLen())), device.FromF32(make([]float32, c.YLen())), device.FromF32(make([]float32, c.WeightLen()))
	d.Kernels().ConvForward(c, y, x, w, device.Buf{})
	d.Kernels().ConvBackwardInput(c, x, y, w)
	d.Kernels().ConvBackwardWeight(c, w, x, y)
	require.Equal(t, 3*c.N, products)
	require.NoError(t, d.Close())
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Config{Library: "mkl"})
	require.EqualError(t, err, `unknown library "mkl" (known: openblas, onednn)`)
	_, err = New(Config{Library: "openblas", CPU: cpu.Config{Threads: -2}})
	require.EqualError(t, err, "openblas: -2 threads")
}
