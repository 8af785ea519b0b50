package commtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// Benchmark times all-reduce over a transport, all ranks in this process. The
// allocations it reports are those of all ranks together.
func Benchmark(b *testing.B, connect Connect) {
	for _, n := range []int{2, 4} {
		for _, length := range []int{256, 16 << 10, 256 << 10, 4 << 20} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, 4*length), func(b *testing.B) {
				benchmarkAllReduce(b, connect(b, n), length)
			})
		}
	}
}

func benchmarkAllReduce(b *testing.B, ranks []collective.Transport, length int) {
	ctx := context.Background()
	var all, warm, done sync.WaitGroup
	warm.Add(len(ranks))
	done.Add(len(ranks))
	start := make(chan struct{})
	for _, t := range ranks {
		all.Go(func() {
			g := collective.NewGroup(t, collective.GroupConfig{})
			buf := device.FromF32(make([]float32, length))
			repeat := func(n int) {
				for range n {
					if err := collective.AllReduce(ctx, g, collective.Sum, buf); err != nil {
						b.Error(err)
						return
					}
				}
			}
			repeat(3) // plans compile, memory grows
			warm.Done()
			<-start
			repeat(b.N)
			done.Done()
			done.Wait()
			if err := g.Close(); err != nil {
				b.Error(err)
			}
			if err := t.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	warm.Wait()
	b.ReportAllocs()
	b.SetBytes(int64(4 * length))
	b.ResetTimer()
	close(start)
	done.Wait()
	b.StopTimer()
	all.Wait()
}
