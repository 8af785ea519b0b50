package collective_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// A receive that was posted ahead blames nobody while its rank does something
// else for longer than the time-out, and a sender no later than that after
// somebody begins to wait, for it or for a receive behind it, nor much sooner.
func TestPostedAhead(t *testing.T) {
	for _, how := range []string{"by Wait", "by Done", "behind it"} {
		synctest.Test(t, func(t *testing.T) {
			config := func(int) collective.GroupConfig { return collective.GroupConfig{Timeout: time.Minute} }
			onRanks(t, 2, config, func(ctx context.Context, g *collective.Group) error {
				value := device.FromF32([]float32{float32(g.Rank())})
				if g.Rank() == 1 {
					<-time.After(90 * time.Second) // of the bubble's clock
					if err := collective.Send(ctx, g, 0, value); err != nil {
						return err
					}
					<-time.After(time.Hour)
					return nil
				}
				receive := func() *collective.Work {
					return g.Exchange(ctx, []collective.PointToPoint{{Peer: 1, Recv: true, Buf: value}})
				}
				first, second := receive(), receive()
				<-time.After(100 * time.Second)
				if err := first.Wait(ctx); err != nil || value.F32()[0] != 1 {
					return fmt.Errorf("received %v, %w", value.F32(), err)
				}
				<-time.After(200 * time.Second)
				start := time.Now()
				switch how {
				case "by Done":
					<-second.Done()
				case "behind it":
					second = receive()
				}
				err := second.Wait(ctx)
				waited := time.Since(start)
				var failure *collective.PeerError
				if !errors.As(err, &failure) || failure.Peer != 1 || waited > time.Minute || waited < 59*time.Second {
					return fmt.Errorf("%s, after %v: %w", how, waited, err)
				}
				return nil
			})
		})
	}
}
