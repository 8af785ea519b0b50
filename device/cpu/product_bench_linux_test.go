package cpu_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// BenchmarkProducts measures the matrix products of the perceptron and of the GPT
// of configs/bench on one thread, as BenchmarkLayers does convolutions.
func BenchmarkProducts(b *testing.B) {
	for _, d := range []device.MatMul{
		{M: 64, N: 1024, K: 784, TransB: true}, {M: 64, N: 784, K: 1024}, {M: 1024, N: 784, K: 64, TransA: true},
		{M: 2048, N: 1152, K: 384, TransB: true}, {M: 2048, N: 384, K: 1152}, {M: 1152, N: 384, K: 2048, TransA: true},
		{M: 2048, N: 384, K: 1536, TransB: true}, {M: 2048, N: 1536, K: 384}, {M: 384, N: 1536, K: 2048, TransA: true},
		{M: 1024, N: 1024, K: 1024}, {M: 1024, N: 1024, K: 1024, TransB: true},
	} {
		an, bn, cn := d.Lens()
		x, y, z := ramp(an), ramp(bn), ramp(cn)
		for _, set := range sets(b) {
			b.Run(fmt.Sprintf("%dx%dx%d_%v_%v/%s", d.M, d.N, d.K, d.TransA, d.TransB, set), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				k := open(b, cpu.Config{Kernels: set}).Kernels()
				k.MatMul(d, z, x, y, device.Buf{})
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					start := processorTime()
					k.MatMul(d, z, x, y, device.Buf{})
					best = min(best, processorTime()-start)
				}
				b.ReportMetric(float64(2*d.M*d.N*d.K)/best.Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
