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
