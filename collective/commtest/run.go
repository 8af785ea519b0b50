package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
)

// Connect returns the n connected transports of a fresh world, rank r at index
// r. It fails tb when it cannot.
type Connect func(tb testing.TB, n int) []collective.Transport

// Run tests transports, and Groups over them.
func Run(t *testing.T, connect Connect) {
	t.Run("transport", func(t *testing.T) { Transports(t, connect) })
	t.Run("group", func(t *testing.T) { Groups(t, connect) })
}

// rankCounts returns all under test, and some of them with -short, as under the
// race detector.
func rankCounts(all ...int) []int {
	if !testing.Short() {
		return all
	}
	return slices.DeleteFunc(all, func(n int) bool { return n != 2 && n != 3 && n != 5 })
}

// patience is how long a call may take before the suite calls it hung. A step of
// a thousand calls, under the race detector on a busy machine, may take
// stepPatience.
const (
	patience     = 60 * time.Second
	stepPatience = 5 * patience
)

// world is n connected ranks under test.
type world struct {
	t        *testing.T
	ranks    []collective.Transport
	patience time.Duration // of each
}

// with runs f over a fresh world of n ranks, closes it and looks for leaks.
func with(t *testing.T, connect Connect, n int, f func(w *world)) {
	t.Helper()
	present := goleak.IgnoreCurrent()
	w := &world{t, connect(t, n), stepPatience}
	if len(w.ranks) != n {
		t.Fatalf("%d transports for %d ranks", len(w.ranks), n)
	}
	f(w)
	for r, rank := range w.ranks {
		if err := rank.Close(); err != nil && !errors.Is(err, collective.ErrClosed) {
			t.Errorf("rank %d: close: %v", r, err)
		}
	}
	goleak.VerifyNone(t, present)
}

// each runs f on every rank at once and fails with the first error.
func (w *world) each(f func(ctx context.Context, rank int, t collective.Transport) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	var all errgroup.Group
	for r, t := range w.ranks {
		all.Go(func() error {
			if err := f(ctx, r, t); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		w.t.Fatal(err)
	}
}

// groups runs f on every rank of a fresh world at once, each with its Group.
func groups(t *testing.T, connect Connect, n int, config collective.GroupConfig, f func(ctx context.Context, g *collective.Group) error) {
	t.Helper()
	with(t, connect, n, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			g := collective.NewGroup(tr, config)
			err := f(ctx, g)
			if err == nil { // nobody leaves before all are done
				err = collective.Barrier(ctx, g)
			}
			return errors.Join(err, g.Close())
		})
	})
}

// pattern fills b with bytes that depend on all of its arguments.
func pattern(b []byte, from, to, tag int) {
	x := uint32(from*7919 + to*104729 + tag*1299709 + 1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}
