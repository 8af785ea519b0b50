package commtest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// BenchmarkWaiting measures what a rank that waits for a late peer costs a
// computation on all processors: the waiting goroutines should sleep. It reports
// the median time of a piece of work alone, and by how many per cent more it
// takes beside the waiting. Pieces with and without take turns, so that a noisy
// machine disturbs both.
func BenchmarkWaiting(b *testing.B, connect Connect) {
	ranks := connect(b, 2)
	groups := make([]*collective.Group, len(ranks))
	for r, t := range ranks {
		groups[r] = collective.NewGroup(t, collective.GroupConfig{})
	}
	ctx := context.Background()
	buffers := [2]device.Buf{device.FromF32(make([]float32, 1<<20)), device.FromF32(make([]float32, 1<<20))}
	start := func(r int) *collective.Work {
		return groups[r].Start(ctx, collective.Call{Kind: plan.AllReduce, In: buffers[r]})
	}
	var alone, beside []time.Duration
	for b.Loop() {
		alone = append(alone, compute())
		waiting := start(0)
		beside = append(beside, compute())
		late := start(1)
		for _, w := range []*collective.Work{waiting, late} {
			if err := w.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(alone)
	slices.Sort(beside)
	middle := len(alone) / 2
	b.ReportMetric(float64(alone[middle].Microseconds())/1000, "alone-ms")
	b.ReportMetric(100*(float64(beside[middle])/float64(alone[middle])-1), "%-more")
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			if err := errors.Join(groups[r].Close(), ranks[r].Close()); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
}

// compute keeps every processor busy for some ten milliseconds, in pieces that
// processors share, and returns how long that took.
func compute() time.Duration {
	begin := time.Now()
	var all sync.WaitGroup
	pieces := make(chan struct{}, 64)
	for range cap(pieces) {
		pieces <- struct{}{}
	}
	close(pieces)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var x [256]float32
			for range pieces {
				for range 2000 {
					for i := range x {
						x[i] = x[i]*0.5 + 1
					}
				}
			}
			runtime.KeepAlive(&x)
		})
	}
	all.Wait()
	return time.Since(begin)
}
