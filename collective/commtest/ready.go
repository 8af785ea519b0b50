package commtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
)

// testAsReady sends bytes that are made part by part, and gives up in the middle.
func testAsReady(t *testing.T, connect Connect) {
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			for i, parts := range [][]int{{}, {7}, {4096, 70_000}, {1, 100, 4097, 600_001, 1_500_003}, {1_048_576, 2_097_152, 3_000_000}} {
				for to := range 3 {
					if err := sendParts(ctx, tr, to, collective.Tag(20+i), parts); err != nil {
						return fmt.Errorf("parts %v: %w", parts, err)
					}
				}
			}
			return nil
		})
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			second := errors.New("second thoughts")
			switch rank {
			case 0:
				err := tr.SendAsReady(ctx, 1, 5, make([]byte, 1_000_000), func(at int) (int, error) {
					if at > 0 {
						return 0, second
					}
					return 300_000, nil
				})
				if !errors.Is(err, second) {
					return fmt.Errorf("ready's error became %v", err)
				}
				return tr.Send(ctx, 1, 6, []byte("over")) // the link lives on
			case 1:
				waiting, cancel := context.WithCancel(ctx)
				defer cancel()
				got := make(chan error, 1)
				go func() { got <- tr.Recv(waiting, 0, 5, make([]byte, 1_000_000)) }()
				if err := tr.Recv(ctx, 0, 6, make([]byte, 4)); err != nil {
					return err
				}
				cancel()
				var link *collective.LinkError
				if err := <-got; !errors.As(err, &link) && !errors.Is(err, context.Canceled) {
					return fmt.Errorf("a message that its sender gave up gave %v", err)
				}
			}
			return nil
		})
	})
}

// sendParts is collective: the rank to gets a message of everybody, which is
// parts[i] bytes long after the i-th step of its making.
func sendParts(ctx context.Context, tr collective.Transport, to int, tag collective.Tag, parts []int) error {
	length := 0
	if len(parts) > 0 {
		length = parts[len(parts)-1]
	}
	sent := make(chan error, 1)
	go func() {
		whole, b := make([]byte, length), make([]byte, length)
		pattern(whole, tr.Rank(), to, int(tag))
		step := 0
		sent <- tr.SendAsReady(ctx, to, tag, b, func(at int) (int, error) {
			if step > 0 && at != parts[step-1] {
				return 0, fmt.Errorf("ready was called with %d, not %d", at, parts[step-1])
			}
			copy(b[at:parts[step]], whole[at:])
			step++
			return parts[step-1], nil
		})
	}()
	if tr.Rank() == to {
		for from := range tr.Size() {
			b, want := make([]byte, length), make([]byte, length)
			if err := tr.Recv(ctx, from, tag, b); err != nil {
				return err
			}
			pattern(want, from, to, int(tag))
			if !bytes.Equal(b, want) {
				return fmt.Errorf("the message of rank %d came otherwise", from)
			}
		}
	}
	return <-sent
}
