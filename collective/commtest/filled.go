package commtest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
)

// testFilled sends messages that are made when they are sent, in memory that may be
// longer than they are.
func testFilled(t *testing.T, connect Connect) {
	const (
		messages = 60
		room     = collective.EagerSize + 3000
	)
	length := func(i int) int { return []int{0, 1, 100, 8191, 8192, collective.EagerSize}[i%6] }
	with(t, connect, 2, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			sent := make(chan error, 1)
			go func() { sent <- sendFilled(ctx, tr, 1-rank, messages, room, length) }()
			if err := sendFilled(ctx, tr, rank, 1, room, length); err != nil {
				return fmt.Errorf("to itself: %w", err)
			}
			if err := tr.Recv(ctx, rank, 30, make([]byte, length(0))); err != nil {
				return fmt.Errorf("from itself: %w", err)
			}
			for i := range messages {
				b := make([]byte, length(i))
				if err := tr.Recv(ctx, 1-rank, 30, b); err != nil {
					return err
				}
				if bytes.Count(b, []byte{byte(i)}) != len(b) {
					return fmt.Errorf("message %d is wrong", i)
				}
			}
			return <-sent
		})
	})
}

func sendFilled(ctx context.Context, tr collective.Transport, to, messages, room int, length func(int) int) error {
	stage := make([]byte, room)
	for i := range messages {
		filled := 0
		err := tr.SendFilled(ctx, to, 30, stage, func(b []byte) []byte {
			filled++
			if len(b) != room {
				return nil // its length is wrong
			}
			for j := range b {
				b[j] = byte(i)
			}
			return b[:length(i)]
		})
		if err != nil || filled != 1 {
			return fmt.Errorf("message %d, filled %d times: %v", i, filled, err)
		}
	}
	return nil
}
