//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// joining is the making of a communicator, as one rank takes part in it.
type joining struct {
	*job
	making
	name  string
	ranks []int // of the world, in their order
	order []int // ascending
	turn  int   // this rank's in order
	show  func(step string)
	info  [rootInfoSize]byte // zeroed: chips leave most of it as it was
}

// lastWord is how long a rank that has lost patience listens whether an earlier one
// has, too, and knows whom it waits for.
const lastWord = 500 * time.Millisecond

// join makes a communicator of ranks of the world, in their order, on a thread
// which it may block; every one of them calls it with the same name. ctx bounds it,
// and its cause is the error. show is told what this rank waits for.
//
// A device makes one communicator at a time. Ranks that make several in different
// orders would wait for each other, did each wait with its device taken: so the
// ranks take their devices in ascending order, each after the one before has, and
// none before all are here: a rank may come late, after something that needs the
// device. Who waits then waits for a higher rank only, and there is no circle.
//
// When ctx ends while the library has the thread, join returns, and the communicator
// is ended when it comes to be.
func (j *job) join(ctx context.Context, t *ascend.Thread, name string, ranks []int, m making, show func(step string)) (uintptr, error) {
	n := &joining{job: j, making: m, name: name, ranks: ranks, order: slices.Sorted(slices.Values(ranks)), show: show}
	n.turn = slices.Index(n.order, j.config.Rank)
	handle, err := n.run(ctx, t)
	if err != nil {
		return 0, n.describe(ctx, err)
	}
	return handle, nil
}

func (n *joining) run(ctx context.Context, t *ascend.Thread) (uintptr, error) {
	if err := n.meet(ctx); err != nil {
		return 0, err
	}
	n.show("waits for its device, on which another communicator is made")
	select {
	case n.device.Joining <- struct{}{}:
	case <-ctx.Done():
		return 0, fmt.Errorf("its device makes another one: %w", context.Cause(ctx))
	}
	n.show("is in the library")
	type communicator struct {
		handle uintptr
		err    error
	}
	made := make(chan communicator, 1)
	var settled atomic.Bool // it is taken, or given up
	go func() {             // ends when the library gives up, by HCCL_CONNECT_TIMEOUT
		defer func() { <-n.device.Joining }()
		var c communicator
		c.err = t.Do(func() (err error) {
			c.handle, err = n.create(ctx)
			if !settled.CompareAndSwap(false, true) && c.handle != 0 {
				ascend.Call(n.library.HcclCommDestroy, c.handle)
			}
			return err
		})
		made <- c
	}()
	select {
	case c := <-made:
		return c.handle, c.err
	case <-ctx.Done():
		if !settled.CompareAndSwap(false, true) {
			c := <-made // at once
			return c.handle, c.err
		}
		return 0, fmt.Errorf("the library has not made it: %w", context.Cause(ctx))
	}
}

// meet lets the ranks meet: it returns when it is this rank's turn to take its device.
func (n *joining) meet(ctx context.Context) error {
	if n.turn == 0 {
		for other, rank := range n.order[1:] {
			n.show(fmt.Sprintf("waits for rank %d to come", rank))
			if _, err := n.config.Store.Wait(ctx, n.key(n.name, "here", other+1)); err != nil {
				return unmet(rank, "come", reason(ctx, err))
			}
		}
		return nil
	}
	if err := n.config.Store.Set(ctx, n.key(n.name, "here", n.turn), nil); err != nil {
		return reason(ctx, err)
	}
	before := n.order[n.turn-1]
	n.show(fmt.Sprintf("waits for rank %d, which goes before it", before))
	info, err := n.config.Store.Wait(ctx, n.key(n.name, "turn", n.turn-1))
	if err != nil {
		n.listen()
		return unmet(before, "begun", reason(ctx, err))
	}
	copy(n.info[:], info[0])
	return nil
}

// unmet is the error of a wait for a rank, whose fault it is when the time is over: else
// the caller has given up, or the store has failed.
func unmet(rank int, what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &peerFailure{rank, fmt.Errorf("it has not %s: %w", what, err)}
	}
	return fmt.Errorf("rank %d has not %s: %w", rank, what, err)
}

// listen waits a moment for the word of another rank that has failed.
func (n *joining) listen() {
	moment := time.NewTimer(lastWord)
	defer moment.Stop()
	select {
	case <-n.ctx.Done():
	case <-moment.C:
	}
}

// reason is why a wait has ended: the cause of its context, where that has.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// describe makes an error that says which communicator could not be made, and, where
// that is known, whose fault it is.
func (n *joining) describe(ctx context.Context, err error) error {
	if ctx.Err() != nil && n.ctx.Err() != nil { // this rank's fate was decided elsewhere
		err = context.Cause(n.ctx)
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = n.suspected(n.ranks, err)
	}
	e := &collective.PeerError{
		Generation: n.config.Generation, Group: n.name, Rank: slices.Index(n.ranks, n.config.Rank), Peer: -1, Global: n.ranks, Call: "joining",
	}
	e.Peer, e.Err = culprit(n.ranks, err)
	return e
}
