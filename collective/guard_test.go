package collective_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// slowCodec does something before it begins.
type slowCodec struct {
	wire.Codec
	before func()
}

func (c *slowCodec) Begin(own []float32, at int) {
	c.before()
	c.Codec.Begin(own, at)
}

// A rank that waited for one that waits, and now works and waits for nobody, blames
// nobody when its time is over.
func TestLateByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patience := func(rank int) collective.GroupConfig {
			return collective.GroupConfig{Timeout: time.Duration(1+9*rank) * time.Minute}
		}
		onRanks(t, 3, patience, func(ctx context.Context, g *collective.Group) error {
			codec := &slowCodec{wire.Codec{Format: wire.NewHalf(false)}, func() {}}
			if g.Rank() == 0 {
				codec.before = func() {
					g.Blame(1, 2)
					<-time.After(2 * time.Minute)
				}
			}
			call := collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 9)), Codec: codec}
			err := g.Start(ctx, call).Wait(ctx)
			if err == nil || !strings.Contains(err.Error(), "not done within 1m0s") {
				return fmt.Errorf("rank %d: %w", g.Rank(), err)
			}
			return nil
		})
	})
}

// Ranks of a sub-group that run different calls are named as in the world.
func TestDifferentCallsOfASubGroup(t *testing.T) {
	onRanks(t, 3, plainConfig, func(ctx context.Context, g *collective.Group) error {
		sub, err := g.Sub(ctx, []int{1, 2})
		if err != nil || sub == nil {
			return err
		}
		defer sub.Close()
		call := collective.Call{Kind: plan.Barrier}
		if g.Rank() == 2 {
			call = collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 9))}
		}
		err = sub.Start(ctx, call).Wait(ctx)
		for _, want := range []string{"ranks run different calls: rank ", "rank 1 call 1 (barrier", "rank 2 call 1 (all-reduce"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("rank %d: %w", g.Rank(), err)
			}
		}
		return nil
	})
}
