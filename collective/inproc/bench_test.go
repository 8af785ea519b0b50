package inproc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
)

// BenchmarkAllReduce counts the allocations of all ranks together, per call of
// one rank (divide by the number of ranks).
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, length := range []int{256, 16 << 10, 256 << 10, 4 << 20} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, 4*length), func(b *testing.B) {
				benchmarkAllReduce(b, n, length)
			})
		}
	}
}

func benchmarkAllReduce(b *testing.B, n, length int) {
	var all sync.WaitGroup
	ctx := context.Background()
	b.ReportAllocs()
	b.SetBytes(int64(4 * length))
	start := make(chan struct{})
	var ready, closing sync.WaitGroup
	ready.Add(n)
	closing.Add(n)
	for _, t := range inproc.New(n) {
		all.Go(func() {
			g := collective.NewGroup(t, collective.GroupConfig{})
			buf := device.FromF32(make([]float32, length))
			for range 3 { // compile, grow
				if err := collective.AllReduce(ctx, g, collective.Max, buf); err != nil {
					b.Error(err)
				}
			}
			ready.Done()
			<-start
			for range b.N {
				if err := collective.AllReduce(ctx, g, collective.Max, buf); err != nil {
					b.Error(err)
					break
				}
			}
			closing.Done()
			closing.Wait()
			g.Close()
			t.Close()
		})
	}
	ready.Wait()
	b.ResetTimer()
	close(start)
	closing.Wait()
	b.StopTimer()
	all.Wait()
}
