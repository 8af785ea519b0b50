package store

import (
	"context"
	"slices"
)

// Local is a table for the ranks of one process. It has those of a Client's
// methods that need no connection, and is safe for concurrent use.
type Local struct{ table *table }

// NewLocal returns an empty table.
func NewLocal() *Local { return &Local{newTable()} }

// Set stores a copy of value under key and wakes who waits for it.
func (l *Local) Set(_ context.Context, key string, value []byte) error {
	l.table.set(key, slices.Clone(value))
	return nil
}

// Wait waits until all keys are there and returns their values, which the
// caller must not change. A time-out is a *WaitError that lists the missing keys.
func (l *Local) Wait(ctx context.Context, keys ...string) ([][]byte, error) {
	var values [][]byte
	var missing []string
	delivered := make(chan struct{})
	w := &waiter{keys: keys, deliver: func(v [][]byte, m []string) {
		values, missing = v, m
		close(delivered)
	}}
	l.table.wait(w)
	select {
	case <-delivered:
	case <-ctx.Done():
		l.table.cancel(w) // does nothing when w is being served
		<-delivered
	}
	if missing != nil {
		return nil, &WaitError{Address: "of this process", Missing: missing, Err: ctx.Err()}
	}
	return values, nil
}

// Will does nothing: ranks of one process die together.
func (l *Local) Will(context.Context, string, []byte) error { return nil }

// Done is never closed.
func (l *Local) Done() <-chan struct{} { return nil }
