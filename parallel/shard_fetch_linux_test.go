//go:build linux && (amd64 || arm64)

package parallel

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
)

// sharedRanks makes transports of n ranks that share memory.
func sharedRanks(t *testing.T, n int) []collective.Transport {
	return commtest.Joined(t, n, func(ctx context.Context, r int, client *store.Client) (collective.Transport, error) {
		return shm.Join(ctx, shm.Config{Rank: r, Size: n, Store: client, Token: commtest.JoinToken})
	})
}

// TestShardedFetch: ranks that read each other's parts of the parameters compute
// what ranks compute that update all of them.
func TestShardedFetch(t *testing.T) {
	for name, fusion := range map[string]FusionConfig{
		"plain": {}, "deterministic": {Deterministic: true}, "clipped": {ClipNorm: 0.5, NoOverlap: true}, "masters": {Masters: device.BF16}, "wire": {Wire: Compression{Format: "int8"}},
	} {
		fusion.ThresholdMB, fusion.CheckEvery = 0.001, 2
		tr := trial{model: mlpConfig, micro: 4, steps: 4, data: newSamples(18, 1, 4), fusion: fusion}
		for _, ranks := range []int{2, 3, 5} {
			tr.shardedIsSame(t, func() []collective.Transport { return sharedRanks(t, ranks) }, fmt.Sprintf("%s, %d ranks", name, ranks))
		}
	}
}

// late is a device that copies when it is let.
type late struct {
	device.Device
	until chan struct{}
}

func (l late) Kernels() device.Kernels { return lateCopy{l.Device.Kernels(), l.until} }

type lateCopy struct {
	device.Kernels
	until chan struct{}
}

func (l lateCopy) Copy(dst, src device.Buf) {
	<-l.until
	l.Kernels.Copy(dst, src)
}

// TestCloseWaitsForReaders: a rank that closes after its last step does not keep
// another from reading its part of the parameters.
func TestCloseWaitsForReaders(t *testing.T) {
	closing := make(chan struct{})
	require.NoError(t, onTransports(t.Context(), sharedRanks(t, 2), func(ctx context.Context, c collective.Comm) error {
		g, m, err := sharding(ctx, c, FusionConfig{Shard: true})
		if err != nil {
			return err
		}
		if err := manual(4, true)(ctx, c, g, m, newSamples(18, 1, 4)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			for _, s := range g.stages {
				s.reducer.cfg.Device = late{s.reducer.cfg.Device, closing}
			}
		}
		if err := g.Step(0.01); err != nil {
			return err
		}
		if c.Rank() == 0 {
			close(closing)
		} else if err := g.Complete(ctx); err != nil {
			return err
		}
		if err := g.Close(); err != nil {
			return err
		}
		return collective.Barrier(ctx, c)
	}))
}
