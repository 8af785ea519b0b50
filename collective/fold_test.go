package collective_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// TestFoldInPieces sums vectors whose slices are folded in several pieces, which
// take turns in scratch memory.
func TestFoldInPieces(t *testing.T) {
	const n, length = 2, 3_300_001 // three pieces
	value := func(rank, i int) float32 { return float32((rank*5 + i) % 7) }
	for _, kind := range []plan.Kind{plan.AllReduce, plan.Reduce, plan.ReduceScatter} {
		for _, inPlace := range []bool{false, true} {
			onRanks(t, n, plainConfig, func(ctx context.Context, g *collective.Group) error {
				half := func(n int) device.Buf { return device.FromBytes(device.BF16, make([]byte, 2*n)) }
				in := half(length)
				for i := range in.U16() {
					in.U16()[i] = collective.Narrow(device.BF16, value(g.Rank(), i))
				}
				lo, hi := 0, length
				if kind == plan.ReduceScatter {
					bounds := plan.Cut(length, n)
					lo, hi = bounds[g.Rank()], bounds[g.Rank()+1]
				}
				c := collective.Call{Kind: kind, In: in, Root: 1}
				got := in.Slice(lo, hi)
				if !inPlace {
					c.Out = half(hi - lo)
					got = c.Out
				}
				if err := g.Start(ctx, c).Wait(ctx); err != nil {
					return err
				}
				if kind == plan.Reduce && g.Rank() != c.Root {
					return nil
				}
				for i, h := range got.U16() {
					if want := value(0, lo+i) + value(1, lo+i); collective.Widen(device.BF16, h) != want {
						return fmt.Errorf("%v, in place %v: element %d is %v, not %v", kind, inPlace, lo+i, collective.Widen(device.BF16, h), want)
					}
				}
				return nil
			})
		}
	}
}
