package collective_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// TestTimeoutTakesItsTime uses a scripted clock: a missing rank costs the
// default of 60 s to the nanosecond.
func TestTimeoutTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		onRanks(t, 3, plainConfig, func(ctx context.Context, g *collective.Group) error {
			start := time.Now()
			if g.Rank() == 1 {
				time.Sleep(time.Hour) // of the scripted clock
			}
			err := collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, 4)))
			var failure *collective.PeerError
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), "waited 1m0s") {
				return fmt.Errorf("rank %d: %w", g.Rank(), err)
			}
			if took := time.Since(start); g.Rank() != 1 && took != time.Minute {
				return fmt.Errorf("took %v", took)
			}
			if failure.Peer != 1 { // directly, or after hearing whom rank 0 waits for
				return fmt.Errorf("blames rank %d: %w", failure.Peer, err)
			}
			return nil
		})
	})
}

// TestCallWait: rank 2 comes five seconds late, and the others' waiting time is
// that, however the plan orders its messages.
func TestCallWait(t *testing.T) {
	for _, algorithm := range []string{"naive", "ring"} {
		for _, length := range []int{30, 300_000} {
			synctest.Test(t, func(t *testing.T) {
				var events [3]*observe.Recorder
				onRanks(t, 3, func(rank int) collective.GroupConfig {
					events[rank] = observe.NewRecorder(8)
					return collective.GroupConfig{Algorithm: algorithm, Events: events[rank]}
				}, func(ctx context.Context, g *collective.Group) error {
					if g.Rank() == 2 {
						time.Sleep(5 * time.Second) // of the scripted clock
					}
					return collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, length)))
				})
				for rank, want := range []time.Duration{5 * time.Second, 5 * time.Second, 0} {
					events[rank].Drain(func(s observe.Span) {
						if s.Kind == observe.CallWait {
							require.Equal(t, want, s.Duration(), "rank %d by %s", rank, algorithm)
						} else {
							require.Zero(t, s.Duration(), "rank %d by %s", rank, algorithm)
						}
					})
				}
			})
		}
	}
}

func TestManyRanksInOneProcess(t *testing.T) {
	const n, length = 256, 1 << 18 // 1 MB
	// Under the race detector a busy machine may take minutes.
	patient := func(int) collective.GroupConfig { return collective.GroupConfig{Timeout: time.Hour} }
	onRanks(t, n, patient, func(ctx context.Context, g *collective.Group) error {
		b := make([]float32, length)
		for i := range b {
			b[i] = float32(g.Rank()%2 + i%2)
		}
		if err := collective.AllReduce(ctx, g, collective.Sum, device.FromF32(b)); err != nil {
			return err
		}
		for i, x := range b {
			if want := float32(n/2 + n*(i%2)); x != want {
				return fmt.Errorf("element %d is %v, not %v", i, x, want)
			}
		}
		return nil
	})
}

// event is a device event that a test sets off.
type event struct {
	done chan struct{}
	err  error
}

func (e event) Wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestCallsWaitForTheirEvent(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
		b := []float32{0}
		ready, failed := event{make(chan struct{}), nil}, event{make(chan struct{}), errors.New("a kernel failed")}
		w := g.Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromF32(b), After: ready})
		b[0] = 21 // what the kernel would do
		close(ready.done)
		if err := w.Wait(ctx); err != nil || b[0] != 42 {
			return fmt.Errorf("got %v, %w", b, err)
		}
		both.Done() // a rank that fails takes down the call that another has not ended
		both.Wait()
		close(failed.done)
		err := g.Start(ctx, collective.Call{Kind: plan.Barrier, After: failed}).Wait(ctx)
		if err == nil || !strings.Contains(err.Error(), "a kernel failed") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// TestNewsTravelsInLargeGroups: not every rank watches every other there.
func TestNewsTravelsInLargeGroups(t *testing.T) {
	onRanks(t, 40, plainConfig, func(ctx context.Context, g *collective.Group) error {
		length := 10
		if g.Rank() == 13 {
			length = 12
		}
		err := collective.AllReduce(ctx, g, collective.Sum, device.FromF32(make([]float32, length)))
		if err == nil || !strings.Contains(err.Error(), "of 10 f32") || !strings.Contains(err.Error(), "of 12 f32") {
			return fmt.Errorf("rank %d: got %w", g.Rank(), err)
		}
		return nil
	})
}

func TestSubGroupOfASubGroup(t *testing.T) {
	onRanks(t, 5, plainConfig, func(ctx context.Context, g *collective.Group) error {
		sub, err := g.Sub(ctx, []int{4, 2, 0})
		if err != nil || sub == nil {
			return err
		}
		defer sub.Close()
		if !reflect.DeepEqual(sub.Hosts(), [][]int{{0, 1, 2}}) {
			return fmt.Errorf("hosts %v", sub.Hosts())
		}
		pair, err := sub.Sub(ctx, []int{1, 0}) // ranks 2 and 4
		if err != nil {
			return err
		}
		if pair != nil {
			defer pair.Close()
			b := []int64{int64(g.Rank())}
			if err := collective.Broadcast(ctx, pair, 0, device.FromI64(b)); err != nil || b[0] != 2 {
				return fmt.Errorf("rank %d got %d, %w", g.Rank(), b[0], err)
			}
		}
		return collective.Barrier(ctx, sub)
	})
}

func TestContextsOfFinishedCallsDoNoHarm(t *testing.T) {
	onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
		b := device.FromF32(make([]float32, 8))
		for range 20 {
			own, cancel := context.WithCancel(ctx)
			err := collective.AllReduce(own, g, collective.Sum, b)
			cancel()
			if err != nil {
				return err
			}
		}
		return collective.AllReduce(ctx, g, collective.Sum, b)
	})
}

func TestWrongCallsAreRefusedEverywhere(t *testing.T) {
	f32 := func(n int) device.Buf { return device.FromF32(make([]float32, n)) }
	for want, c := range map[string]collective.Call{
		"unknown algorithm \"rings\"":              {Kind: plan.AllReduce, In: f32(4), Algorithm: "rings"},
		"algorithm ring has no gather":             {Kind: plan.Gather, In: f32(4), Out: f32(8), Algorithm: "ring"},
		"root 2 of 2 ranks":                        {Kind: plan.Broadcast, In: f32(4), Root: 2},
		"input of f32, output of i32":              {Kind: plan.AllReduce, In: f32(4), Out: device.FromI32(make([]int32, 4))},
		"input of 4 elements, output of 5":         {Kind: plan.AllReduce, In: f32(4), Out: f32(5)},
		"a part of 2 elements in a buffer of 3":    {Kind: plan.ReduceScatter, In: f32(4), Out: f32(3)},
		"bounds [0 2 1] are not 3 ascending":       {Kind: plan.AllGather, Out: f32(4), InBounds: []int{0, 2, 1}},
		"bounds up to 5 of a vector of 4":          {Kind: plan.ReduceScatter, In: f32(4), InBounds: []int{0, 2, 5}},
		"unknown reduction":                        {Kind: plan.AllReduce, In: f32(4), Op: 9},
		"unknown operation":                        {Kind: 77, In: f32(4)},
		"a part of 2 elements for the rank itself": {Kind: plan.AllToAll, In: f32(4), Out: f32(6), InBounds: []int{0, 2, 4}, OutBounds: []int{0, 3, 6}},
	} {
		onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
			err := g.Start(ctx, c).Wait(ctx)
			var failure *collective.PeerError
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("rank %d: got %w, want %q", g.Rank(), err, want)
			}
			return nil
		})
	}
	onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
		if err := g.Exchange(ctx, []collective.PointToPoint{{Peer: 2}}).Wait(ctx); err == nil {
			return errors.New("an exchange with rank 2 of 2 went well")
		}
		if _, err := g.Sub(ctx, []int{0, 0}); err == nil {
			return errors.New("a sub-group has a rank twice")
		}
		return nil
	})
}

func TestAlloc(t *testing.T) {
	onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
		for _, n := range []int{0, 1, 1000} {
			b, err := g.Alloc(ctx, device.F16, n)
			if err != nil {
				return err
			}
			if b.Len != n || uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))%device.Align != 0 {
				return fmt.Errorf("allocated %d elements at %p", b.Len, b.Bytes())
			}
		}
		return nil
	})
}

// TestDifferentSubGroups: ranks that list different ranks find out.
func TestDifferentSubGroups(t *testing.T) {
	onRanks(t, 3, plainConfig, func(ctx context.Context, g *collective.Group) error {
		ranks := []int{0, 1}
		if g.Rank() == 1 {
			ranks = []int{1, 2}
		}
		if _, err := g.Sub(ctx, ranks); err == nil || !strings.Contains(err.Error(), "for one sub-group") {
			return fmt.Errorf("rank %d: %w", g.Rank(), err)
		}
		return nil
	})
}

// TestClosedPeerEndsExchange: what a rank had sent before it closed arrives,
// what it never sent fails.
func TestClosedPeerEndsExchange(t *testing.T) {
	onRanks(t, 2, plainConfig, func(ctx context.Context, g *collective.Group) error {
		b := device.FromF32(make([]float32, 3))
		if g.Rank() == 0 {
			return errors.Join(collective.Send(ctx, g, 1, b), g.Close())
		}
		first, second := g.Exchange(ctx, []collective.PointToPoint{{Peer: 0, Recv: true, Buf: b}}), g.Exchange(ctx, []collective.PointToPoint{{Peer: 0, Recv: true, Buf: b}})
		if err := first.Wait(ctx); err != nil {
			return err
		}
		err := second.Wait(ctx)
		var failure *collective.PeerError
		if !errors.As(err, &failure) || failure.Peer != 0 || failure.Call != "receive of 3 f32" && failure.Call != "receive" && failure.Call != "exchange" {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}
