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

func TestSplit(t *testing.T) {
	onRanks(t, 7, plainConfig, func(ctx context.Context, g *collective.Group) error {
		// Odd and even ranks, highest first; rank 6 takes no part.
		colour := g.Rank() % 2
		if g.Rank() == 6 {
			colour = -1
		}
		sub, err := collective.Split(ctx, g, colour, -g.Rank())
		if err != nil {
			return err
		}
		if g.Rank() == 6 {
			if sub != nil {
				return errors.New("rank 6 is in a group")
			}
			return nil
		}
		defer sub.Close()
		if want := 2 - g.Rank()/2; sub.Size() != 3 || sub.Rank() != want {
			return fmt.Errorf("rank %d is %d of %d, not %d of 3", g.Rank(), sub.Rank(), sub.Size(), want)
		}
		b := []int32{int32(g.Rank())}
		if err := collective.AllReduce(ctx, sub, collective.Sum, device.FromI32(b)); err != nil {
			return err
		}
		if want := int32(6 + 3*(g.Rank()%2)); b[0] != want { // 0+2+4, 1+3+5
			return fmt.Errorf("sum of colour %d is %d, not %d", colour, b[0], want)
		}
		return collective.Barrier(ctx, sub)
	})
}

// TestCycleOfWaits: groups may be used in opposite order by different ranks, but
// not when each waits for its first call before it starts the other's.
func TestCycleOfWaits(t *testing.T) {
	for _, waitsBetween := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
				var subs [2]collective.Comm
				for i := range subs {
					sub, err := g.Sub(ctx, []int{0, 1})
					if err != nil {
						return err
					}
					defer sub.Close()
					subs[i] = sub
				}
				start := time.Now()
				var works []*collective.Work
				var failure error
				for i := range subs {
					own := subs[(i+g.Rank())%2]
					w := own.Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 100_000))})
					if waitsBetween {
						failure = errors.Join(failure, w.Wait(ctx))
					}
					works = append(works, w)
				}
				for _, w := range works {
					failure = errors.Join(failure, w.Wait(ctx))
				}
				var peer *collective.PeerError
				switch {
				case !waitsBetween:
					return failure
				case !errors.As(failure, &peer):
					return fmt.Errorf("rank %d: a cycle of waits gave %w", g.Rank(), failure)
				case peer.Peer != 1-g.Rank() && !strings.Contains(peer.Error(), fmt.Sprintf("rank %d reports", 1-g.Rank())):
					// Who times out first blames the other, and tells it so.
					return fmt.Errorf("rank %d: a cycle of waits gave %w", g.Rank(), failure)
				case time.Since(start) > 3*time.Minute:
					return fmt.Errorf("took %v", time.Since(start))
				}
				return nil
			})
		})
	}
}

// TestGatherBytesAndTwin: a twin has the same ranks, and what ranks give may have
// any length.
func TestGatherBytesAndTwin(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		onRanks(t, ranks, plainConfig, func(ctx context.Context, g *collective.Group) error {
			twin, err := collective.Twin(ctx, g)
			if err != nil {
				return err
			}
			defer twin.Close()
			if twin.Rank() != g.Rank() || twin.Size() != ranks {
				return fmt.Errorf("rank %d of %d is %d of %d in the twin", g.Rank(), ranks, twin.Rank(), twin.Size())
			}
			all, err := collective.GatherBytes(ctx, twin, []byte(strings.Repeat("x", g.Rank())), "marks")
			if err != nil {
				return err
			}
			for r := range ranks {
				if string(all[r]) != strings.Repeat("x", r) {
					return fmt.Errorf("rank %d gave %q", r, all[r])
				}
			}
			return collective.Barrier(ctx, g)
		})
	}
}
