//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// TestRing: sums that ask for a ring's order are a Group's to the bit.
func TestRing(t *testing.T) {
	const ranks = 4
	seed := rand.Uint64()
	run := func(c collective.Comm) (all [][]float32, err error) {
		r := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
		for _, length := range []int{1, 3, 4, 7, 1000, 70_001} {
			for _, kind := range []plan.Kind{plan.AllReduce, plan.ReduceScatter} {
				for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Prod} {
					b := make([]float32, length)
					for i := range b {
						b[i] = float32(r.NormFloat64())
					}
					err := c.Start(context.Background(), collective.Call{Kind: kind, Op: op, In: device.FromF32(b), Algorithm: "ring"}).Wait(context.Background())
					if err != nil {
						return nil, fmt.Errorf("%v %v of %d: %w", kind, op, length, err)
					}
					if kind == plan.ReduceScatter { // the rest of the buffer is undefined
						bounds := plan.Cut(length, ranks)
						b = b[bounds[c.Rank()]:bounds[c.Rank()+1]]
					}
					all = append(all, slices.Clone(b))
				}
			}
		}
		return all, nil
	}
	want, got := make([][][]float32, ranks), make([][][]float32, ranks)
	var all errgroup.Group
	for r, transport := range inproc.New(ranks) {
		all.Go(func() (err error) {
			g := collective.NewGroup(transport, collective.GroupConfig{})
			want[r], err = run(g)
			return errors.Join(err, g.Close(), transport.Close())
		})
	}
	require.NoError(t, all.Wait())
	w := start(t, ranks)
	for _, err := range w.each(func(_ context.Context, c collective.Comm) (err error) {
		got[c.Rank()], err = run(c)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, want, got, "seed %d", seed)
}
