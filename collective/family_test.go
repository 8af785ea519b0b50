package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// A rank that waits in vain in one sub-group closes the others. Whoever waits for
// it there, in a call or a message, learns of the rank that is to blame, by the
// number that it has in the world.
func TestClosedAfterLoss(t *testing.T) {
	for _, exchange := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			patience := func(rank int) collective.GroupConfig {
				return collective.GroupConfig{Timeout: time.Duration(4-rank) * time.Minute}
			}
			onRanks(t, 4, patience, func(ctx context.Context, g *collective.Group) error {
				var subs [2]collective.Comm
				for i := range subs {
					sub, err := g.Sub(ctx, []int{i + 1, 3})
					if err != nil {
						return err
					}
					subs[i] = sub
				}
				value := device.FromF32([]float32{1})
				sum := func(c collective.Comm) error {
					if exchange {
						return c.Exchange(ctx, []collective.PointToPoint{{Peer: 1 - c.Rank(), Recv: true, Buf: value}}).Wait(ctx)
					}
					return c.Start(ctx, collective.Call{Kind: plan.AllReduce, In: value}).Wait(ctx)
				}
				switch g.Rank() {
				case 3:
					err := sum(subs[0])
					close(over)
					if want := "rank 3, group world.1"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ": peer 1: waited 1m0s for it") {
						return fmt.Errorf("rank 3: %w", err)
					}
					if failure := (*collective.PeerError)(nil); !errors.As(err, &failure) || failure.Rank != 1 || failure.Peer != 0 {
						return fmt.Errorf("ranks of the group: %w", err)
					}
					return errors.Join(subs[0].Close(), subs[1].Close())
				case 2:
					err := sum(subs[1])
					if err == nil || !strings.Contains(err.Error(), "rank 2, group world.2") ||
						!strings.Contains(err.Error(), ": peer 3: it closed the group after this: rank 3, group world.1") || !strings.Contains(err.Error(), ": peer 1: waited 1m0s for it") {
						return fmt.Errorf("rank 2: %w", err)
					}
					return subs[1].Close()
				case 1:
					<-over
					return subs[0].Close()
				}
				return nil
			})
		})
	}
}
