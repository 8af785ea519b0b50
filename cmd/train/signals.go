package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// errInterrupted is the cause of a context that a second signal cancelled.
var errInterrupted = errors.New("interrupted")

// grace is what cleaning up may take after the second signal.
const grace = 500 * time.Millisecond

// interrupts turns signals into a request and an order to leave.
type interrupts struct {
	stop  chan struct{} // closed by the first signal: finish the step
	notes chan os.Signal
	done  sync.WaitGroup
}

// watchSignals listens for SIGINT and SIGTERM until close. The second one
// cancels the returned context; when that does not end the program it is told to
// leave.
func watchSignals(parent context.Context, leave func()) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &interrupts{stop: make(chan struct{}), notes: make(chan os.Signal, 2)}
	signal.Notify(w.notes, os.Interrupt, syscall.SIGTERM)
	w.done.Go(func() {
		defer cancel(nil)
		if _, open := <-w.notes; !open {
			return
		}
		close(w.stop)
		if _, open := <-w.notes; !open {
			return
		}
		cancel(errInterrupted)
		// A step's computation is not interruptible, the user has waited once.
		last := time.AfterFunc(grace, leave)
		defer last.Stop()
		for range w.notes { // the third and later ones change nothing
		}
	})
	return ctx, w
}

// close stops listening. The context is cancelled.
func (w *interrupts) close() {
	signal.Stop(w.notes)
	close(w.notes)
	w.done.Wait()
}
