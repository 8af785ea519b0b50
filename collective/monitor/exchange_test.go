package monitor

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/device"
)

// chain is a run of a pipeline of three: values go down, gradients up, with
// receives of both posted before what they need is there. hung is what rank 0
// does before its fifth message.
func chain(r *rank, place, size int, hung func()) error {
	ctx := context.Background()
	start := func(peer int, recv bool) *collective.Work {
		if peer < 0 || peer > 2 {
			w, complete := collective.NewWork()
			complete(nil)
			return w
		}
		return r.group.Exchange(ctx, []collective.PointToPoint{{Peer: peer, Recv: recv, Buf: device.FromF32(make([]float32, size))}})
	}
	for micro := range 100 {
		values, gradients := start(place-1, true), start(place+1, true)
		if err := values.Wait(ctx); err != nil {
			return err
		}
		if place == 0 && micro == 4 {
			hung()
		}
		down := start(place+1, false)
		if err := gradients.Wait(ctx); err != nil {
			return err
		}
		up := start(place-1, false)
		for _, w := range []*collective.Work{down, up} {
			if err := w.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestFrozenStage: ranks that wait for one that has frozen in an exchange are not
// told that they wait for each other, and do not blame each other.
func TestFrozenStage(t *testing.T) {
	for n := range 16 {
		after, size := 20+n/2, []int{64, 1 << 17}[n%2] // of one message, and of several
		synctest.Test(t, func(t *testing.T) {
			fault, err := faulty.Parse("rank=1 kind=freeze")
			require.NoError(t, err)
			fault.After = after
			j := newJob(t, 3, 20*time.Second, fault)
			errs := j.each(func(i int, r *rank) error { return chain(r, i, size, func() {}) })
			for _, i := range []int{0, 2} {
				require.ErrorContains(t, errs[i], "peer 1: ", "rank %d, frozen after %d", i, after)
				reports := strings.Join(j.ranks[i].of(Stalled), "\n")
				require.NotEmpty(t, reports)
				require.NotContains(t, reports, "different calls", "frozen after %d", after)
			}
			j.close()
		})
	}
}

// TestHungStage: the rank that waits for one that waits blames the one at the end.
func TestHungStage(t *testing.T) {
	const size = 64
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, 3, 20*time.Second)
		errs := j.each(func(i int, r *rank) error {
			if i != 1 {
				return chain(r, i, size, func() { hang(j.released) })
			}
			defer close(j.released)
			return chain(r, i, size, nil)
		})
		for _, i := range []int{1, 2} {
			require.ErrorContains(t, errs[i], "peer 0: ", "rank %d", i)
		}
		reports := strings.Join(j.ranks[2].of(Stalled), "\n")
		require.Contains(t, reports, "rank 0 has not sent it; it has ended no call of this group yet; its goroutines:")
		require.NotContains(t, reports, "different calls")
		j.close()
	})
}
