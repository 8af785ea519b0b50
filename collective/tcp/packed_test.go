package tcp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// packedBroadcast sends what is packed in more pieces than a sender may be ahead.
func packedBroadcast(t *testing.T, ranks []*Transport) {
	t.Helper()
	values := make([][]float32, len(ranks))
	var all errgroup.Group
	for rank, r := range ranks {
		values[rank] = make([]float32, 1_200_000)
		if rank == 0 {
			for i := range values[0] {
				values[0][i] = 1 + float32(i%(1<<20))/(1<<20)
			}
		}
		all.Go(func() error {
			g := collective.NewGroup(r, collective.GroupConfig{Packed: collective.PackAll})
			defer g.Close()
			call := collective.Call{Kind: plan.Broadcast, In: device.FromF32(values[rank])}
			if err := collective.Run(context.Background(), g, call); err != nil {
				return err
			}
			return collective.Barrier(context.Background(), g)
		})
	}
	require.NoError(t, all.Wait())
	for _, got := range values[1:] {
		require.Equal(t, values[0], got)
	}
}
