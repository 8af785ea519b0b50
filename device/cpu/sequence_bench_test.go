package cpu_test

import (
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/device"
)

// rate reports elements per nanosecond.
func rate(b *testing.B, elements int) {
	b.ReportMetric(float64(elements)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
}

// BenchmarkFunctions is of vectors that fit the first-level cache.
func BenchmarkFunctions(b *testing.B) {
	const n = 2048
	x, y, z := ramp(n), ramp(n), ramp(n)
	names := []string{"identity", "relu", "tanh", "sigmoid", "gelu", "gelutanh", "silu"}
	for f, name := range names {
		a := device.Activation(f)
		b.Run(name+"/forward", func(b *testing.B) {
			each(b, func(b *testing.B, k device.Kernels) {
				for b.Loop() {
					k.Activate(a, y, x)
				}
				rate(b, n)
			})
		})
		b.Run(name+"/backward", func(b *testing.B) {
			each(b, func(b *testing.B, k device.Kernels) {
				for b.Loop() {
					k.ActivateBackward(a, z, y, x, false)
				}
				rate(b, n)
			})
		})
	}
}

func BenchmarkLayerNorm(b *testing.B) {
	d := device.LayerNorm{Rows: 2048, Cols: 384, Epsilon: 1e-5}
	x, y, dx := ramp(d.Len()), ramp(d.Len()), ramp(d.Len())
	mean, invstd, scale, shift := ramp(d.Rows), ramp(d.Rows), ramp(d.Cols), ramp(d.Cols)
	dscale, dshift := ramp(d.Cols), ramp(d.Cols)
	b.Run("forward", func(b *testing.B) {
		each(b, func(b *testing.B, k device.Kernels) {
			for b.Loop() {
				k.LayerNormForward(d, y, mean, invstd, x, scale, shift)
			}
			rate(b, d.Len())
		})
	})
	b.Run("backward", func(b *testing.B) {
		each(b, func(b *testing.B, k device.Kernels) {
			for b.Loop() {
				k.LayerNormBackward(d, dx, dscale, dshift, y, x, mean, invstd, scale)
			}
			rate(b, d.Len())
		})
	})
}

func BenchmarkAttention(b *testing.B) {
	for _, causal := range []bool{false, true} {
		d := device.Attention{Batch: 2, Length: 256, Heads: 6, Width: 64, Causal: causal}
		qkv, y, logsum, dqkv := ramp(3*d.YLen()), ramp(d.YLen()), ramp(d.LogLen()), ramp(3*d.YLen())
		products := d.Batch * d.Heads * d.Length * d.Length * d.Width * 2
		b.Run(fmt.Sprintf("forward/causal=%v", causal), func(b *testing.B) {
			each(b, func(b *testing.B, k device.Kernels) {
				for b.Loop() {
					k.AttentionForward(d, y, logsum, qkv)
				}
				flops(b, 2*products)
			})
		})
		b.Run(fmt.Sprintf("backward/causal=%v", causal), func(b *testing.B) {
			each(b, func(b *testing.B, k device.Kernels) {
				for b.Loop() {
					k.AttentionBackward(d, dqkv, y, qkv, y, logsum)
				}
				flops(b, 5*products)
			})
		})
	}
}

func BenchmarkEntropy(b *testing.B) {
	d := device.CrossEntropy{Rows: 2048, Classes: 256}
	logits, probs := ramp(d.Rows*d.Classes), ramp(d.Rows*d.Classes)
	loss, correct, labels := device.FromF64(make([]float64, 1)), device.FromI32(make([]int32, 1)), device.FromI32(make([]int32, d.Rows))
	b.Run("forward", func(b *testing.B) {
		each(b, func(b *testing.B, k device.Kernels) {
			for b.Loop() {
				k.CrossEntropyForward(d, loss, correct, probs, logits, labels)
			}
			rate(b, d.Rows*d.Classes)
		})
	})
	b.Run("backward", func(b *testing.B) {
		each(b, func(b *testing.B, k device.Kernels) {
			for b.Loop() {
				k.CrossEntropyBackward(d, logits, probs, labels, 0)
			}
			rate(b, d.Rows*d.Classes)
		})
	})
}

func BenchmarkSumRows(b *testing.B) {
	const rows, columns = 2048, 1536
	a, out := ramp(rows*columns), ramp(columns)
	each(b, func(b *testing.B, k device.Kernels) {
		for b.Loop() {
			k.SumRows(out, a, rows, columns, false)
		}
		traffic(b, 4*rows*columns)
	})
}
