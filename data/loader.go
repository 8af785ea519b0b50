package data

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
)

// LoaderConfig sizes a Loader. The zero value, with Micro set, prepares two
// micro-batches ahead on one goroutine.
type LoaderConfig struct {
	Micro   int // the largest micro-batch, in samples
	Workers int // goroutines that fill; default 1
	Ahead   int // micro-batches prepared before they are asked for; default Workers + 1
	Hold    int // micro-batches the caller may hold at once; default 1
}

// Batch is one micro-batch in host memory. It belongs to the caller of Next
// until Release, and to the Loader again afterwards.
type Batch struct {
	Part
	Samples // of the Part's Indices

	ready chan struct{}
	err   error
	lent  bool
	all   Samples // the whole memory
	ids   []int
}

// Loader prepares micro-batches ahead of their use, in order. It has a ring of
// Ahead + Hold buffers and allocates nothing once it runs. Next is called by
// one goroutine at a time, Release and Close by any.
type Loader struct {
	filler  Filler
	hold    int
	single  bool        // whoever hands out the parts fills them
	free    chan *Batch // empty buffers
	work    chan *Batch // to be filled, by any worker
	ordered chan *Batch // the same ones, in order
	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup
	lent    atomic.Int32
	pending *Batch // taken from ordered by a Next that was cancelled
	end     error  // what Next goes on to return
}

// NewLoader starts to prepare the parts. It iterates over them on a goroutine
// of its own, which Close waits for.
func NewLoader(filler Filler, parts iter.Seq[Part], c LoaderConfig) (*Loader, error) {
	if c.Micro < 1 || c.Workers < 0 || c.Ahead < 0 || c.Hold < 0 {
		return nil, fmt.Errorf("data: loader settings %+v: Micro must be at least 1, the others at least 0", c)
	}
	workers, hold := max(c.Workers, 1), max(c.Hold, 1)
	ahead := c.Ahead
	if ahead == 0 {
		ahead = workers + 1
	}
	slots := ahead + hold
	l := &Loader{filler: filler, hold: hold, single: workers == 1, stop: make(chan struct{}),
		free: make(chan *Batch, slots), work: make(chan *Batch, slots), ordered: make(chan *Batch, slots)}
	for range slots {
		l.free <- &Batch{ready: make(chan struct{}, 1), all: filler.Sizes().of(c.Micro), ids: make([]int, c.Micro)}
	}
	l.running.Go(func() { l.produce(parts) })
	if !l.single {
		for range workers {
			l.running.Go(l.fillAll)
		}
	}
	return l, nil
}

// produce hands out the parts in order; only waiting for a free buffer blocks.
func (l *Loader) produce(parts iter.Seq[Part]) {
	defer close(l.work)
	defer close(l.ordered)
	for part := range parts {
		var b *Batch
		select {
		case b = <-l.free:
		case <-l.stop:
			return
		}
		select {
		case <-l.stop: // while buffers were free
			return
		default:
		}
		n := len(part.Indices)
		if n > len(b.ids) {
			b.err = fmt.Errorf("data: micro-batch %d of step %d has %d samples, the loader was made for %d", part.Micro, part.Step, n, len(b.ids))
			b.ready <- struct{}{}
			l.ordered <- b
			return
		}
		b.Part = part
		b.Indices = b.ids[:copy(b.ids, part.Indices)]
		b.Samples = b.all.first(n, l.filler.Sizes())
		l.ordered <- b
		if l.single {
			l.fill(b) // to hand it on would wake another thread
		} else {
			l.work <- b
		}
	}
}

func (l *Loader) fillAll() {
	for b := range l.work {
		select {
		case <-l.stop:
			continue // nobody will take it
		default:
		}
		l.fill(b)
	}
}

func (l *Loader) fill(b *Batch) {
	if err := l.filler.Fill(b.Samples, b.Indices, b.Epoch); err != nil {
		b.err = fmt.Errorf("micro-batch %d of step %d: %w", b.Micro, b.Step, err)
	}
	b.ready <- struct{}{}
}

// Next returns the next micro-batch, waiting for it if need be. After the last
// one it returns io.EOF; after an error of Fill, that error, always. When ctx
// ends it returns the reason, and a later Next goes on where this one stopped.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if l.end != nil {
		return nil, l.end
	}
	if int(l.lent.Load()) >= l.hold {
		return nil, fmt.Errorf("data: %d micro-batches are held, LoaderConfig.Hold allows no more: release one", l.hold)
	}
	b, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	if b.err != nil {
		l.end = b.err
		return nil, l.end
	}
	b.lent = true
	l.lent.Add(1)
	return b, nil
}

// take waits for the next batch in order to be filled.
func (l *Loader) take(ctx context.Context) (*Batch, error) {
	select {
	case <-l.stop:
		return nil, ErrClosed
	default:
	}
	if l.pending == nil {
		select {
		case b, more := <-l.ordered:
			if !more {
				return nil, l.finished()
			}
			l.pending = b
		case <-ctx.Done():
			return nil, fmt.Errorf("data: waiting for the next micro-batch: %w", context.Cause(ctx))
		case <-l.stop:
			return nil, ErrClosed
		}
	}
	select {
	case <-l.pending.ready:
		b := l.pending
		l.pending = nil
		return b, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("data: waiting for micro-batch %d of step %d: %w", l.pending.Micro, l.pending.Step, context.Cause(ctx))
	case <-l.stop:
		return nil, ErrClosed
	}
}

// finished tells the end of the parts from a producer that was stopped.
func (l *Loader) finished() error {
	select {
	case <-l.stop:
		return ErrClosed
	default:
		l.end = io.EOF
		return l.end
	}
}

// Release gives b back, whose memory may then be overwritten. Releasing a
// batch twice panics.
func (l *Loader) Release(b *Batch) {
	if !b.lent {
		panic("data: a batch was released twice")
	}
	b.lent = false
	l.lent.Add(-1)
	l.free <- b
}

// Close stops the goroutines and waits for them. A Next that waits returns
// ErrClosed. Batches still held stay readable. Close may be called again.
func (l *Loader) Close() error {
	l.once.Do(func() { close(l.stop) })
	l.running.Wait()
	return nil
}
