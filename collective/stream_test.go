package collective_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
)

// hooked calls before ahead of each large Send, with its number from 0.
type hooked struct {
	collective.Transport
	before func(ctx context.Context, sent int) error
	mu     sync.Mutex
	sent   int
}

func (h *hooked) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) > collective.EagerSize {
		h.mu.Lock()
		sent := h.sent
		h.sent++
		h.mu.Unlock()
		if err := h.before(ctx, sent); err != nil {
			return err
		}
	}
	return h.Transport.Send(ctx, to, tag, b)
}

// TestChunksArePassedOnWhileTheyArrive: rank 0 of a ring holds back the second
// half of its first chunk until rank 1 has begun with its second round, whose
// values depend on the first half.
func TestChunksArePassedOnWhileTheyArrive(t *testing.T) {
	const n, segments = 3, 4
	const length = n * segments << 18 // 1 MiB each
	begun := make(chan struct{})
	hooks := []func(ctx context.Context, sent int) error{
		func(ctx context.Context, sent int) error {
			if sent == segments/2 {
				select {
				case <-begun:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		},
		func(_ context.Context, sent int) error {
			if sent == segments {
				close(begun)
			}
			return nil
		},
		func(context.Context, int) error { return nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all errgroup.Group
	transports := inproc.New(n)
	groups, vectors := make([]*collective.Group, n), make([][]float32, n)
	for r, transport := range transports {
		groups[r] = collective.NewGroup(&hooked{Transport: transport, before: hooks[r]}, collective.GroupConfig{Algorithm: "ring"})
		vectors[r] = slices.Repeat([]float32{float32(r + 1)}, length)
	}
	for r, g := range groups {
		all.Go(func() error { return collective.AllReduce(ctx, g, collective.Sum, device.FromF32(vectors[r])) })
	}
	require.NoError(t, all.Wait())
	for r, g := range groups {
		require.Equal(t, -1, slices.IndexFunc(vectors[r], func(x float32) bool { return x != 6 }))
		require.NoError(t, g.Close())
		require.NoError(t, transports[r].Close())
	}
}
