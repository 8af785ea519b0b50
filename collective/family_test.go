package collective_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
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

// late is a transport on which all but notices, which have a kilobyte, come late.
type late struct {
	collective.Transport
	until chan struct{}
}

func (l late) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	err := l.Transport.Recv(ctx, from, tag, b)
	if len(b) != 1024 {
		<-l.until
		synctest.Wait() // for the notices of that time
	}
	return err
}

func (late) RecvInPlace(context.Context, int, collective.Tag, func([]byte) error) (bool, error) {
	return false, nil
}

// TestLateRankFinishesWhatALeaverTookPartIn: that another rank has failed because a
// third one left does not keep a rank from the call before.
func TestLateRankFinishesWhatALeaverTookPartIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan struct{})
		var ranks errgroup.Group
		for rank, transport := range inproc.New(3) {
			ranks.Go(func() error {
				var end collective.Transport = transport
				switch rank {
				case 0:
					defer close(failed)
				case 1:
					end = late{transport, failed}
				}
				g := collective.NewGroup(end, collective.GroupConfig{})
				own, all := device.FromF32([]float32{float32(rank)}), device.FromF32(make([]float32, 3))
				gather := collective.Call{Kind: plan.AllGather, In: own, Out: all, Algorithm: "direct"}
				if err := g.Start(t.Context(), gather).Wait(t.Context()); err != nil || !slices.Equal(all.F32(), []float32{0, 1, 2}) {
					return fmt.Errorf("rank %d got %g: %w", rank, all.F32(), err)
				}
				if rank < 2 {
					err := g.Start(t.Context(), gather).Wait(t.Context())
					if failure := (*collective.PeerError)(nil); !errors.As(err, &failure) || failure.Peer != 2 || !errors.Is(err, collective.ErrClosed) {
						return fmt.Errorf("rank %d after rank 2 left: %w", rank, err)
					}
				}
				return g.Close()
			})
		}
		require.NoError(t, ranks.Wait())
	})
}
