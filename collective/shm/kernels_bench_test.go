//go:build linux && (amd64 || arm64)

package shm

import (
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// BenchmarkCombine is the arithmetic alone: two vectors into both.
func BenchmarkCombine(b *testing.B) {
	for _, typ := range []device.Type{device.F32, device.F16, device.BF16} {
		for _, size := range []int{16 << 10, 512 << 10, 8 << 20} {
			b.Run(fmt.Sprintf("%v/%dKiB", typ, size>>10), func(b *testing.B) {
				a := newArithmetic(2)
				x, _ := device.HostAlloc(device.F32, size/4)
				y, _ := device.HostAlloc(device.F32, size/4)
				c := &collective.DirectCall{Type: typ, Op: collective.Sum}
				b.SetBytes(int64(4 * size))
				for b.Loop() {
					a.srcs = append(a.srcs[:0], x.Bytes(), y.Bytes())
					a.dsts = append(a.dsts[:0], x.Bytes(), y.Bytes())
					a.combine(c)
				}
			})
		}
	}
}
