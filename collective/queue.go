package collective

import "context"

// Start implements Comm.
func (g *Group) Start(ctx context.Context, c Call) *Work {
	w := &Work{group: g, ctx: ctx, call: c}
	w.call.normalise()
	g.mu.Lock()
	g.sequence++
	w.sequence = g.sequence
	if g.death != nil {
		err := g.deathOf(w)
		g.mu.Unlock()
		return failedWork(err)
	}
	if g.last == nil {
		g.first = w
	} else {
		g.last.next = w
	}
	g.last = w
	g.mu.Unlock()
	g.signal()
	return w
}

// run is Start and Wait in one: where nothing is queued the call runs here, as a
// Work that serves one such call after the other.
func (g *Group) run(ctx context.Context, c *Call) error {
	g.mu.Lock()
	if g.running || g.first != nil || g.death != nil {
		g.mu.Unlock()
		return g.Start(ctx, *c).Wait(ctx)
	}
	g.running = true
	g.sequence++
	sequence, w := g.sequence, g.spare
	g.spare = nil
	g.currentLocal.Store(sequence)
	g.mu.Unlock()
	if w == nil {
		w = &Work{}
	}
	w.begin(g, ctx, c, sequence)
	g.runOne(w)
	err := w.err
	g.mu.Lock()
	g.running = false
	more := g.first != nil
	if err == nil {
		g.spare = w
	}
	g.mu.Unlock()
	if more {
		g.signal()
	}
	return err
}

func (g *Group) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// work runs the queue's calls, unless a caller of Wait does.
func (g *Group) work() {
	for {
		select {
		case <-g.wake:
			g.runUntil(nil)
		case <-g.ctx.Done():
			return
		}
	}
}

// runUntil runs queued calls in order, until w has ended or the queue is empty.
// It returns at once when somebody else runs them.
func (g *Group) runUntil(w *Work) {
	g.mu.Lock()
	if g.running {
		g.mu.Unlock()
		return
	}
	g.running = true
	for g.first != nil && g.death == nil && (w == nil || !w.hasEnded()) {
		next := g.pop()
		g.mu.Unlock()
		g.runOne(next)
		g.mu.Lock()
	}
	g.running = false
	more := g.first != nil
	g.mu.Unlock()
	if more {
		g.signal()
	}
}

// pop takes the oldest call off the queue; g.mu is held. From then on it is the
// running one: a Close that came before it began would tell the peers that this rank
// has taken part in it.
func (g *Group) pop() *Work {
	w := g.first
	g.currentLocal.Store(w.sequence)
	g.first, w.next = w.next, nil
	if g.first == nil {
		g.last = nil
	}
	return w
}

func (g *Group) runOne(w *Work) {
	g.current.Store(w)
	err := g.executor.run(w)
	g.current.Store(nil)
	if err == nil {
		g.ended.Store(w.sequence)
	}
	g.currentLocal.Store(0)
	if err != nil {
		err = g.fail(w, err)
	}
	g.executor.settle()
	w.finish(err)
}
