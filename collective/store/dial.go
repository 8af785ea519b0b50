package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
)

// Dial connects to the store at address and proves the token. It tries again
// while nobody listens there, until ctx ends, because rank 0 may come last.
func Dial(ctx context.Context, address, token string) (*Client, error) {
	conn, err := connect(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	err = challenge.Present(conn, purpose, token)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("store %s: %w", address, err)
	}
	_ = conn.SetDeadline(time.Time{})
	c := &Client{address: address, conn: conn, pending: map[uint64]chan message{}, done: make(chan struct{})}
	c.running.Go(c.read)
	return c, nil
}

func connect(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	start := time.Now()
	var last error // the newest that is not a time-out
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		var bad *net.AddrError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("store: %w", err)
		}
		var late net.Error
		if last == nil || !errors.As(err, &late) || !late.Timeout() {
			last = err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("store %s: not reachable for %v (does rank 0 run, and is the address right?): %w",
				address, time.Since(start).Round(time.Millisecond), last)
		}
	}
}
