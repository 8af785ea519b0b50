package cpu_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// each runs f for every kernel set, with one thread and with two.
func each(b *testing.B, f func(b *testing.B, k device.Kernels)) {
	for _, set := range sets(b) {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", set, threads), func(b *testing.B) {
				f(b, open(b, cpu.Config{Threads: threads, Kernels: set}).Kernels())
			})
		}
	}
}

// peak returns the fused sums that one core can do with a kernel set, in
// GFLOP/s: the best of some short loops, or 0 where no loop is written.
func peak(set string) float64 {
	rounds, operations := cpu.PeakRounds(set)
	if rounds == nil {
		return 0
	}
	const n = 20000
	best := time.Hour
	for range 50 {
		start := time.Now()
		rounds(n)
		best = min(best, time.Since(start))
	}
	return float64(n*operations) / float64(best.Nanoseconds())
}

// ramp returns n floats that are neither zero nor subnormal.
func ramp(n int) device.Buf {
	b, err := device.HostAlloc(device.F32, n)
	if err != nil {
		panic(err)
	}
	for i := range b.F32() {
		b.F32()[i] = float32(i%17-8) * 0.125
	}
	return b
}

// flops reports a rate from the operations of one run, and its share of what
// the threads could do at most. b is one that each made.
func flops(b *testing.B, operations int) {
	rate := float64(operations) * float64(b.N) / float64(b.Elapsed().Nanoseconds())
	b.ReportMetric(rate, "GFLOP/s")
	var threads int
	names := strings.Split(b.Name(), "/")
	_, err := fmt.Sscanf(names[len(names)-1], "threads=%d", &threads)
	require.NoError(b, err)
	if most := peak(names[len(names)-2]) * float64(threads); most > 0 {
		b.ReportMetric(100*rate/most, "%peak")
	}
}

// traffic reports a rate from the bytes of one run.
func traffic(b *testing.B, bytes int) {
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

func BenchmarkMatMul(b *testing.B) {
	for _, d := range []device.MatMul{
		{M: 1024, N: 1024, K: 1024}, {M: 1024, N: 1024, K: 1024, TransA: true}, {M: 1024, N: 1024, K: 1024, TransB: true},
		{M: 64, N: 1024, K: 784, TransB: true}, {M: 64, N: 784, K: 1024}, {M: 1024, N: 784, K: 64, TransA: true}, {M: 64, N: 10, K: 64, TransB: true},
	} {
		b.Run(fmt.Sprintf("%dx%dx%d_%v_%v", d.M, d.N, d.K, d.TransA, d.TransB), func(b *testing.B) {
			each(b, func(b *testing.B, k device.Kernels) {
				an, bn, cn := d.Lens()
				x, y, z := ramp(an), ramp(bn), ramp(cn)
				k.MatMul(d, z, x, y, device.Buf{})
				b.ReportAllocs()
				for b.Loop() {
					k.MatMul(d, z, x, y, device.Buf{})
				}
				flops(b, 2*d.M*d.N*d.K)
			})
		})
	}
}

// benchConvs are layers of ResNet-20 on 28 x 28 and 32 x 32, and of ResNet-18
// and 50.
func benchConvs() []device.Conv {
	conv := func(c, size, k, window, stride int) device.Conv {
		return device.Conv{
			N: 32, C: c, H: size, W: size, K: k, R: window, S: window, StrideH: stride, StrideW: stride,
			PadH: window / 2, PadW: window / 2, XLayout: device.Blocked16,
		}
	}
	stem := func(c, size, k int) device.Conv {
		d := conv(c, size, k, 3, 1)
		d.XLayout = device.Plain
		return d
	}
	return []device.Conv{
		conv(16, 28, 16, 3, 1), conv(32, 14, 32, 3, 1), conv(64, 7, 64, 3, 1),
		conv(16, 32, 16, 3, 1), conv(32, 16, 32, 3, 1), conv(64, 8, 64, 3, 1),
		conv(16, 32, 32, 3, 2), conv(32, 16, 64, 3, 2), conv(16, 32, 32, 1, 2),
		stem(1, 28, 16), stem(3, 32, 16),
		conv(64, 32, 64, 3, 1), conv(128, 16, 128, 3, 1), conv(512, 4, 512, 3, 1), conv(256, 14, 64, 1, 1),
	}
}

func BenchmarkConv(b *testing.B) {
	for _, d := range benchConvs() {
		b.Run(fmt.Sprintf("%d@%d_to_%d_%dx%d_stride%d_%s", d.C, d.H, d.K, d.R, d.S, d.StrideH, d.XLayout), func(b *testing.B) {
			x, y, w := ramp(d.XLen()), ramp(d.YLen()), ramp(d.WeightLen())
			dx, dw := ramp(d.XLen()), ramp(d.WeightLen())
			operations := 2 * d.N * d.OutH() * d.OutW() * d.K * d.C * d.R * d.S
			for name, call := range map[string]func(k device.Kernels){
				"forward": func(k device.Kernels) { k.ConvForward(d, y, x, w, device.Buf{}) },
				"input":   func(k device.Kernels) { k.ConvBackwardInput(d, dx, y, w) },
				"weight":  func(k device.Kernels) { k.ConvBackwardWeight(d, dw, x, y) },
			} {
				b.Run(name, func(b *testing.B) {
					each(b, func(b *testing.B, k device.Kernels) {
						call(k)
						b.ReportAllocs()
						for b.Loop() {
							call(k)
						}
						flops(b, operations)
					})
				})
			}
		})
	}
}

func BenchmarkBatchNorm(b *testing.B) {
	for _, size := range [][2]int{{16, 32}, {64, 8}, {64, 32}} {
		d := device.BatchNorm{N: 32, C: size[0], H: size[1], W: size[1], Layout: device.Blocked16, Activation: device.ReLU}
		x, y, dx, dy, residual := ramp(d.Len()), ramp(d.Len()), ramp(d.Len()), ramp(d.Len()), ramp(d.Len())
		mean, scale, dscale, dshift := ramp(d.C), ramp(d.C), ramp(d.C), ramp(d.C)
		m := device.FromF64(make([]float64, d.C))
		m2 := device.FromF64(make([]float64, d.C))
		bytes := d.Len() * 4
		for _, c := range []struct {
			name   string
			passes int
			call   func(k device.Kernels)
		}{
			{"moments", 1, func(k device.Kernels) { k.Moments(d, m, m2, x) }},
			{"forward", 2, func(k device.Kernels) { k.BatchNormForward(d, y, x, mean, scale, scale, mean, device.Buf{}) }},
			{"residual", 3, func(k device.Kernels) { k.BatchNormForward(d, y, x, mean, scale, scale, mean, residual) }},
			{"backward", 7, func(k device.Kernels) {
				k.BatchNormBackward(d, dx, device.Buf{}, dscale, dshift, dy, x, y, mean, scale, scale, false)
			}},
		} {
			b.Run(fmt.Sprintf("%d@%d/%s", size[0], size[1], c.name), func(b *testing.B) {
				each(b, func(b *testing.B, k device.Kernels) {
					b.ReportAllocs()
					for b.Loop() {
						c.call(k)
					}
					traffic(b, c.passes*bytes)
				})
			})
		}
	}
}

func BenchmarkElements(b *testing.B) {
	for _, n := range []int{1 << 12, 1 << 18, 1 << 23} {
		x, y, z, v := ramp(n), ramp(n), ramp(n), ramp(n)
		k16 := device.FromBytes(device.F16, make([]byte, 2*n))
		squares := device.FromF64(make([]float64, (n+device.NormBlock-1)/device.NormBlock))
		momentum := device.Update{Step: 2, LR: 0, Scale: 1, Momentum: 0.9, Nesterov: true}
		moment := device.Update{Step: 2, LR: 0, Scale: 1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
		parts := []device.Buf{x, y, z}
		for i := range v.F32() {
			v.F32()[i] = 1
		}
		for _, c := range []struct {
			name   string
			passes int
			call   func(k device.Kernels)
		}{
			{"copy", 2, func(k device.Kernels) { k.Copy(z, x) }},
			{"add", 3, func(k device.Kernels) { k.Add(z, x, y) }},
			{"reduce", 3, func(k device.Kernels) { k.Reduce(device.Max, z, x) }},
			{"fold", 4, func(k device.Kernels) { k.Fold(v, parts) }},
			{"relu", 2, func(k device.Kernels) { k.Activate(device.ReLU, z, x) }},
			{"sgd", 5, func(k device.Kernels) { k.SGD(momentum, x, y, z) }},
			{"adam", 7, func(k device.Kernels) { k.Adam(moment, x, y, z, v) }},
			{"squares", 1, func(k device.Kernels) { k.SumSquares(squares, x) }},
			{"finite", 1, func(k device.Kernels) { k.AllFinite(x) }},
			{"tof16", 1, func(k device.Kernels) { k.Cast(k16, x) }},
			{"dropout", 2, func(k device.Kernels) { k.Dropout(z, x, 0.5, 1) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				each(b, func(b *testing.B, k device.Kernels) {
					b.ReportAllocs()
					for b.Loop() {
						c.call(k)
					}
					traffic(b, c.passes*4*n)
				})
			})
		}
	}
}

func BenchmarkPool(b *testing.B) {
	d := device.Pool{Kind: device.MaxPool, N: 32, C: 64, H: 32, W: 32, R: 2, S: 2, StrideH: 2, StrideW: 2}
	x, y := ramp(d.XLen()), ramp(d.YLen())
	arg := device.FromI32(make([]int32, d.YLen()))
	each(b, func(b *testing.B, k device.Kernels) {
		for b.Loop() {
			k.PoolForward(d, y, arg, x)
		}
		traffic(b, 4*d.XLen())
	})
}

func BenchmarkCrossEntropy(b *testing.B) {
	d := device.CrossEntropy{Rows: 128, Classes: 10}
	logits, probs := ramp(1280), ramp(1280)
	loss, correct, labels := device.FromF64(make([]float64, 1)), device.FromI32(make([]int32, 1)), device.FromI32(make([]int32, 128))
	each(b, func(b *testing.B, k device.Kernels) {
		b.ReportAllocs()
		for b.Loop() {
			k.CrossEntropyForward(d, loss, correct, probs, logits, labels)
		}
	})
}

// BenchmarkHalves: GB/s counts what is read and written.
func BenchmarkHalves(b *testing.B) {
	const n = 1 << 20
	for _, typ := range []device.Type{device.F16, device.BF16} {
		run := func(name string, bytes int, f func(k device.Kernels, wide, x, y, z device.Buf)) {
			b.Run(fmt.Sprintf("%s/%v", name, typ), func(b *testing.B) {
				each(b, func(b *testing.B, k device.Kernels) {
					wide := ramp(n)
					halves := [3]device.Buf{}
					for i := range halves {
						halves[i], _ = device.HostAlloc(typ, n)
						k.Cast(halves[i], wide)
					}
					for b.Loop() {
						f(k, wide, halves[0], halves[1], halves[2])
					}
					traffic(b, bytes*n)
				})
			})
		}
		run("widen", 6, func(k device.Kernels, wide, x, _, _ device.Buf) { k.Cast(wide, x) })
		run("narrow", 6, func(k device.Kernels, wide, x, _, _ device.Buf) { k.Cast(x, wide) })
		run("fold", 6, func(k device.Kernels, _, x, y, z device.Buf) { k.Fold(z, []device.Buf{x, y}) })
	}
}
