//go:build !race

package inproc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
)

// TestSteadyStateAllocations: a blocking call of a known shape makes its Work
// and nothing else, small or large. (Under the race detector sync.Pool drops
// items on purpose, hence the build constraint.)
func TestSteadyStateAllocations(t *testing.T) {
	for _, length := range []int{100, 1 << 20} {
		ctx := context.Background()
		ranks := inproc.New(2)
		const warm, runs = 3, 50
		other := make(chan error, 1)
		g, peer := collective.NewGroup(ranks[0], collective.GroupConfig{}), collective.NewGroup(ranks[1], collective.GroupConfig{})
		go func() {
			b := device.FromF32(make([]float32, length))
			var err error
			for i := 0; i < warm+runs+1 && err == nil; i++ { // AllocsPerRun warms up once
				err = collective.AllReduce(ctx, peer, collective.Sum, b)
			}
			other <- err
		}()
		b := device.FromF32(make([]float32, length))
		call := func() { require.NoError(t, collective.AllReduce(ctx, g, collective.Sum, b)) }
		for range warm {
			call()
		}
		// Two ranks' Works; above that a worker that happens to run a call makes
		// a channel for who waits.
		require.LessOrEqual(t, testing.AllocsPerRun(runs, call), 5.0)
		require.NoError(t, <-other)
		require.NoError(t, g.Close())
		require.NoError(t, peer.Close())
		for _, r := range ranks {
			require.NoError(t, r.Close())
		}
	}
}
