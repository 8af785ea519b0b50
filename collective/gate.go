package collective

import (
	"context"
	"math"
	"sync/atomic"
)

// gate is a count that one goroutine raises and one other waits for.
type gate struct {
	reached atomic.Int64
	wanted  atomic.Int64 // what is waited for; nobody waits: the largest number
	wake    chan struct{}
}

func (g *gate) init() { g.wake = make(chan struct{}, 1) }

// reset starts at 0; nobody uses the gate meanwhile.
func (g *gate) reset() {
	g.reached.Store(0)
	g.wanted.Store(math.MaxInt64)
	select {
	case <-g.wake:
	default:
	}
}

func (g *gate) advance(n int) {
	if g.reached.Add(int64(n)) < g.wanted.Load() {
		return
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// await returns when count is reached; false when ended came first.
func (g *gate) await(count int64, ended <-chan struct{}) bool {
	if g.reached.Load() >= count {
		return true
	}
	g.wanted.Store(count)
	defer g.wanted.Store(math.MaxInt64)
	for g.reached.Load() < count {
		select {
		case <-g.wake:
		case <-ended:
			return false
		}
	}
	return true
}

// pace keeps a sender behind the actions, or a receiver behind the transfers,
// that its values depend on, and tells the other side how far it has come.
type pace struct {
	other, own *gate  // nil: nothing to wait for
	needs      []need // of the values at work
}

// ready waits until elements lo to hi may be touched.
func (p *pace) ready(ctx context.Context, lo, hi int) error {
	if p.other == nil || len(p.needs) == 0 || p.other.await(required(p.needs, lo, hi), ctx.Done()) {
		return nil
	}
	return context.Cause(ctx)
}

func (p *pace) done(n int) {
	if p.own != nil {
		p.own.advance(n)
	}
}
