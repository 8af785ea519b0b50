package commtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
)

// Transports tests the contract of collective.Transport.
func Transports(t *testing.T, connect Connect) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Connect)
	}{
		{"hosts", testHosts},
		{"lengths", testLengths},
		{"in place", testInPlace},
		{"order", testOrder},
		{"tags", testTags},
		{"eager", testEager},
		{"big both ways", testBigBothWays},
		{"many at once", testManyAtOnce},
		{"wrong length", testWrongLength},
		{"as ready", testAsReady},
		{"filled", testFilled},
		{"cancel", testCancel},
		{"close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, connect) })
	}
}

func testHosts(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		for r, rank := range w.ranks {
			if rank.Rank() != r || rank.Size() != 3 {
				t.Errorf("rank %d of 3 says it is %d of %d", r, rank.Rank(), rank.Size())
			}
			var all []int
			first := -1
			for _, host := range rank.Hosts() {
				if len(host) == 0 || host[0] <= first || !slices.IsSorted(host) {
					t.Errorf("rank %d: hosts %v are not sorted", r, rank.Hosts())
				}
				first = host[0]
				all = append(all, host...)
			}
			slices.Sort(all)
			if !slices.Equal(all, []int{0, 1, 2}) {
				t.Errorf("rank %d: hosts %v do not have each rank once", r, rank.Hosts())
			}
		}
	})
}

// lengths are awkward around nothing and around the eager limit.
func lengths() []int {
	const eager = collective.EagerSize
	return []int{0, 1, 3, 64, 4096, eager - 1, eager, eager + 1, 1_000_003, 0, 5}
}

// testLengths has every rank send to every rank, itself included.
func testLengths(t *testing.T, connect Connect) {
	for _, n := range []int{1, 2, 4} {
		with(t, connect, n, func(w *world) {
			w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
				for i, length := range lengths() {
					err := exchange(ctx, tr, collective.Tag(9), i, length, false)
					if err != nil {
						return fmt.Errorf("%d bytes: %w", length, err)
					}
				}
				return nil
			})
		})
	}
}

func testInPlace(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i, length := range lengths() {
				if err := exchange(ctx, tr, collective.Tag(1<<63|5), i, length, true); err != nil {
					return fmt.Errorf("%d bytes: %w", length, err)
				}
			}
			return nil
		})
	})
	with(t, connect, 2, func(w *world) {
		refused := errors.New("refused by use")
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			if rank == 1 {
				return tr.Send(ctx, 0, 3, []byte("twelve bytes"))
			}
			offered, err := tr.RecvInPlace(ctx, 1, 3, func([]byte) error { return refused })
			switch {
			case offered && !errors.Is(err, refused):
				return fmt.Errorf("use's error became %v", err)
			case !offered:
				return tr.Recv(ctx, 1, 3, make([]byte, 12))
			}
			return nil
		})
	})
}

// exchange sends a pattern to every rank and receives one from each.
func exchange(ctx context.Context, tr collective.Transport, tag collective.Tag, round, length int, inPlace bool) error {
	var sends errgroup.Group
	for to := range tr.Size() {
		sends.Go(func() error {
			b := make([]byte, length)
			pattern(b, tr.Rank(), to, round)
			return tr.Send(ctx, to, tag, b)
		})
	}
	for from := range tr.Size() {
		want := make([]byte, length)
		pattern(want, from, tr.Rank(), round)
		if err := expect(ctx, tr, from, tag, want, inPlace); err != nil {
			return err
		}
	}
	return sends.Wait()
}

// expect receives one message and compares it.
func expect(ctx context.Context, tr collective.Transport, from int, tag collective.Tag, want []byte, inPlace bool) error {
	wrong := fmt.Errorf("%d bytes from rank %d arrived changed", len(want), from)
	if inPlace {
		at := 0
		offered, err := tr.RecvInPlace(ctx, from, tag, func(got []byte) error {
			if !bytes.HasPrefix(want[at:], got) {
				return wrong
			}
			at += len(got)
			return nil
		})
		if offered && err == nil && at != len(want) {
			return wrong
		}
		if offered || err != nil {
			return err
		}
	}
	got := make([]byte, len(want))
	if err := tr.Recv(ctx, from, tag, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return wrong
	}
	return nil
}

// testOrder mixes small and large messages of one tag, which keep their order.
func testOrder(t *testing.T, connect Connect) {
	sizes := []int{8, collective.EagerSize + 1, 16, 0, 200_000, 1, 2, 3, collective.EagerSize}
	with(t, connect, 2, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i := range 5 * len(sizes) {
				b := make([]byte, sizes[i%len(sizes)])
				pattern(b, 0, 1, i)
				var err error
				if rank == 0 {
					err = tr.Send(ctx, 1, 77, b)
				} else {
					err = expect(ctx, tr, 0, 77, b, i%2 == 0)
				}
				if err != nil {
					return fmt.Errorf("message %d: %w", i, err)
				}
			}
			return nil
		})
	})
}

// testTags receives in the opposite order of sending.
func testTags(t *testing.T, connect Connect) {
	const tags = 50
	with(t, connect, 2, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i := range tags {
				b := make([]byte, 10+i)
				pattern(b, rank, 1-rank, i)
				if err := tr.Send(ctx, 1-rank, collective.Tag(i), b); err != nil {
					return err
				}
			}
			for i := tags - 1; i >= 0; i-- {
				b := make([]byte, 10+i)
				pattern(b, 1-rank, rank, i)
				if err := expect(ctx, tr, 1-rank, collective.Tag(i), b, false); err != nil {
					return fmt.Errorf("tag %d: %w", i, err)
				}
			}
			return nil
		})
	})
}

// testEager sends before anybody receives: small messages must not wait, and
// what was sent is a copy.
func testEager(t *testing.T, connect Connect) {
	with(t, connect, 2, func(w *world) {
		sent := make(chan struct{})
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			b := make([]byte, collective.EagerSize)
			if rank == 0 {
				defer close(sent)
				for i := range 4 {
					pattern(b, 0, 1, i)
					if err := tr.Send(ctx, 1, 1, b); err != nil {
						return err
					}
				}
				clear(b)
				return nil
			}
			select {
			case <-sent:
			case <-ctx.Done():
				return fmt.Errorf("small sends wait for the receiver: %w", ctx.Err())
			}
			for i := range 4 {
				pattern(b, 0, 1, i)
				if err := expect(ctx, tr, 0, 1, b, i%2 == 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
