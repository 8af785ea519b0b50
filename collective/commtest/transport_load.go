package commtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
)

// testBigBothWays has all pairs send large messages to each other at the same
// time, each rank with one sender and one receiver.
func testBigBothWays(t *testing.T, connect Connect) {
	with(t, connect, 4, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i, length := range []int{70_000, 3_000_001} {
				if err := exchange(ctx, tr, 4, i, length, i == 1); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// testManyAtOnce uses one transport from many goroutines.
func testManyAtOnce(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			var all errgroup.Group
			for lane := range 8 {
				all.Go(func() error {
					for i := range 20 {
						if err := exchange(ctx, tr, collective.Tag(lane), i*8+lane, (i*5003+lane*17)%90_000, lane%2 == 0); err != nil {
							return fmt.Errorf("lane %d, message %d: %w", lane, i, err)
						}
					}
					return nil
				})
			}
			return all.Wait()
		})
	})
}

// testWrongLength: the receiver gets a LengthError with the message's head, and
// the next message is whole.
func testWrongLength(t *testing.T, connect Connect) {
	with(t, connect, 2, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i, got := range []int{0, 10, 300, 100_000} {
				for _, want := range []int{5, 90_000} {
					b := make([]byte, got)
					pattern(b, 0, 1, i)
					next := []byte("next")
					if rank == 0 {
						if err := errors.Join(tr.Send(ctx, 1, 2, b), tr.Send(ctx, 1, 2, next)); err != nil {
							return err
						}
						continue
					}
					err := tr.Recv(ctx, 0, 2, make([]byte, want))
					var wrong *collective.LengthError
					if !errors.As(err, &wrong) {
						return fmt.Errorf("%d bytes received as %d: %v is no LengthError", got, want, err)
					}
					head := b[:min(got, collective.HeadSize)]
					if wrong.Peer != 0 || wrong.Want != want || wrong.Got != got || !bytes.Equal(wrong.Head, head) {
						return fmt.Errorf("%d bytes received as %d: %v, with a head of %d bytes", got, want, wrong, len(wrong.Head))
					}
					if err := expect(ctx, tr, 0, 2, next, false); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// testCancel: a cancelled receive ends with ctx's error and consumes nothing.
func testCancel(t *testing.T, connect Connect) {
	with(t, connect, 2, func(w *world) {
		cancelled := make(chan struct{})
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			if rank == 0 {
				select {
				case <-cancelled:
				case <-ctx.Done():
					return ctx.Err()
				}
				return tr.Send(ctx, 1, 8, []byte("late"))
			}
			short, cancel := context.WithCancel(ctx)
			var receive errgroup.Group
			receive.Go(func() error { return tr.Recv(short, 0, 8, make([]byte, 4)) })
			cancel()
			if err := receive.Wait(); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a cancelled receive returned %v", err)
			}
			if err := tr.Send(short, 0, 8, nil); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a cancelled send returned %v", err)
			}
			close(cancelled)
			return expect(ctx, tr, 0, 8, []byte("late"), false)
		})
	})
}

// testClose: who waits for a rank that closes gets a LinkError that names it,
// after what it had sent; the rank itself gets ErrClosed.
func testClose(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			b := make([]byte, 100)
			if rank == 2 {
				for to := range 2 {
					if err := tr.Send(ctx, to, 1, b); err != nil {
						return err
					}
				}
				for from := range 2 { // both have the message
					if err := tr.Recv(ctx, from, 2, nil); err != nil {
						return err
					}
				}
				if err := tr.Close(); err != nil {
					return err
				}
				if err := errors.Join(tr.Close(), nil); err != nil {
					return fmt.Errorf("closed twice: %w", err)
				}
				err := tr.Send(ctx, 0, 1, b)
				if !errors.Is(err, collective.ErrClosed) {
					return fmt.Errorf("a send after Close returned %v", err)
				}
				if err := tr.Recv(ctx, 0, 1, b); !errors.Is(err, collective.ErrClosed) {
					return fmt.Errorf("a receive after Close returned %v", err)
				}
				return nil
			}
			if err := errors.Join(tr.Recv(ctx, 2, 1, b), tr.Send(ctx, 2, 2, nil)); err != nil {
				return err
			}
			err := tr.Recv(ctx, 2, 1, b)
			var lost *collective.LinkError
			if !errors.As(err, &lost) || lost.Rank != rank || lost.Peer != 2 {
				return fmt.Errorf("a receive from a rank that closed returned %v", err)
			}
			if err := tr.Send(ctx, 2, 1, make([]byte, 2*collective.EagerSize)); !errors.As(err, &lost) {
				return fmt.Errorf("a send to a rank that closed returned %v", err)
			}
			return nil
		})
	})
}
