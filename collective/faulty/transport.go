package faulty

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// Config says what goes wrong.
type Config struct {
	// Faults of other ranks than the transport's do nothing.
	Faults []Fault
	// Kill is what a fault of kind kill does; nil: it closes the transport.
	Kill func()
}

// Transport is another one with faults.
type Transport struct {
	collective.Transport
	config Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	owned  sync.WaitGroup

	mu       sync.Mutex
	triggers []*trigger
	thawed   chan struct{} // nil: not frozen
	late     map[stream]*queue
	failed   error // of a message that left late
	killed   error // after a fault of kind kill
}

var _ collective.Transport = (*Transport)(nil)

// damager is a transport that can change a bit of the next message to a rank
// below its own checksum; false when it has none.
type damager interface{ DamageNext(to int) bool }

// Wrap returns t with the faults of its rank, or t itself when it has none.
// Closing the result closes t.
func Wrap(t collective.Transport, c Config) collective.Transport {
	w := &Transport{Transport: t, config: c, late: map[stream]*queue{}}
	for _, f := range c.Faults {
		if f.Rank == t.Rank() {
			w.triggers = append(w.triggers, &trigger{Fault: f})
		}
	}
	if len(w.triggers) == 0 {
		return t
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// effects is what happens to one message.
type effects struct {
	delay, late   time.Duration
	drop, corrupt bool
	bit           float64 // which one, as a share of the message
	kill          bool
}

// strike counts a message to a peer, or to all for -1, and returns what happens
// to it. It freezes the rank if a fault says so.
func (t *Transport) strike(peer int) effects {
	var e effects
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.triggers {
		if !g.next(peer) {
			continue
		}
		switch g.Kind {
		case Delay:
			e.delay += g.For
		case Reorder:
			e.late = max(e.late, g.For)
		case Drop:
			e.drop = true
		case Corrupt:
			e.corrupt, e.bit = true, g.draw(1)
		case Freeze:
			t.freeze(g.For)
		case Kill:
			e.kill = true
		}
	}
	return e
}

// freeze begins a freeze, unless one lasts; t.mu is held.
func (t *Transport) freeze(length time.Duration) {
	if t.thawed != nil || t.ctx.Err() != nil {
		return
	}
	t.thawed = make(chan struct{})
	if length == 0 {
		return
	}
	t.owned.Go(func() {
		_ = t.pause(t.ctx, length)
		t.mu.Lock()
		defer t.mu.Unlock()
		close(t.thawed)
		t.thawed = nil
	})
}

// running waits while the rank is frozen.
func (t *Transport) running(ctx context.Context) error {
	t.mu.Lock()
	thawed := t.thawed
	t.mu.Unlock()
	if thawed == nil {
		return nil
	}
	select {
	case <-thawed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return fmt.Errorf("faulty: rank %d: %w", t.Rank(), collective.ErrClosed)
	}
}

// pause waits for a time.
func (t *Transport) pause(ctx context.Context, length time.Duration) error {
	if length == 0 {
		return nil
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return fmt.Errorf("faulty: rank %d: %w", t.Rank(), collective.ErrClosed)
	}
}

// kill ends the rank.
func (t *Transport) kill() error {
	err := &collective.LinkError{Rank: t.Rank(), Peer: t.Rank(), Err: fmt.Errorf("killed by an injected fault: %w", collective.ErrClosed)}
	t.mu.Lock()
	t.killed = err
	t.mu.Unlock()
	if t.config.Kill != nil {
		t.config.Kill()
	} else {
		t.end()
		_ = t.Transport.Close()
	}
	return err
}

// because returns err, or what killed the rank: whatever fails after that fails
// for that reason, also what was in flight.
func (t *Transport) because(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.killed != nil {
		return t.killed
	}
	return err
}

// Send implements collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	e := t.strike(to)
	if e.kill {
		return t.kill()
	}
	return t.because(t.send(ctx, to, tag, b, e))
}

// send sends a message as the faults will have it.
func (t *Transport) send(ctx context.Context, to int, tag collective.Tag, b []byte, e effects) error {
	if err := t.running(ctx); err != nil {
		return err
	}
	if err := t.pause(ctx, e.delay); err != nil {
		return err
	}
	if e.drop {
		return nil
	}
	if e.corrupt && len(b) > 0 {
		if d, ok := t.Transport.(damager); !ok || !d.DamageNext(to) {
			b = slices.Clone(b)
			bit := int(e.bit * float64(8*len(b)))
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
	if handed, err := t.overtaken(stream{to, tag}, b, e.late); handed || err != nil {
		return err
	}
	return t.Transport.Send(ctx, to, tag, b)
}

// SendAsReady sends when all is ready, as Send does.
func (t *Transport) SendAsReady(ctx context.Context, to int, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	return collective.SendWhenReady(ctx, t, to, tag, b, ready)
}

// SendFilled sends what fill makes in stage.
func (t *Transport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, t, to, tag, stage, fill)
}

// Recv implements collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	if err := t.running(ctx); err != nil {
		return t.because(err)
	}
	if err := t.Transport.Recv(ctx, from, tag, b); err != nil {
		return t.because(err)
	}
	return t.because(t.running(ctx))
}

// RecvInPlace implements collective.Transport.
func (t *Transport) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	if err := t.running(ctx); err != nil {
		return true, t.because(err)
	}
	offered, err := t.Transport.RecvInPlace(ctx, from, tag, use)
	if err == nil && offered {
		err = t.running(ctx)
	}
	return offered, t.because(err)
}

// end has nothing more started.
func (t *Transport) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel()
}

// Close implements collective.Transport. What is on its way late leaves first.
func (t *Transport) Close() error {
	t.flush()
	t.end()
	err := t.Transport.Close()
	t.owned.Wait()
	return err
}
