package collective

import "context"

// Work is a call in flight.
type Work struct {
	done chan struct{}
	err  error
}

// NewWork returns a Work and the function that completes it, for hooks that
// bring their own communication. complete is called once.
func NewWork() (w *Work, complete func(error)) {
	w = &Work{done: make(chan struct{})}
	return w, func(err error) { w.err = err; close(w.done) }
}

// Done is closed when the call has ended.
func (w *Work) Done() <-chan struct{} { return w.done }

// Err returns the call's error; only valid after Done.
func (w *Work) Err() error { return w.err }

// Wait returns the call's error when it has ended, or ctx's.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
