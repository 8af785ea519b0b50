package parallel

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// courier brings what a stage computes to the stage that needs it: in memory on
// one rank, by the pipe's Exchange to another. Shapes go before the first
// micro-batch of a size.
type courier struct {
	cfg     ExecutorConfig
	kernels device.Kernels
	arena   *device.Arena // of parcels
	free    []*parcel

	program    *program
	micros     []Micro
	training   bool
	boundaries []*boundary // by the earlier stage; nil where this rank holds neither
	posted     int         // the receives of the list before here are posted
	batch      []collective.PointToPoint
	first      [1]collective.PointToPoint
	fresh      []*parcel // those in batch
	waited     int64     // when the last wait for a message ended
}

// mostLeaving is how many parcels of a direction may wait for their receiver at
// a boundary; the schedule is proved to move on with sends that block.
const mostLeaving = 4

// headBytes is how much of a parcel travels ahead. When it is there, the peer has
// computed what the rank waits for, and the rest is on its way.
const headBytes = 64

func newCourier(c ExecutorConfig) *courier {
	return &courier{cfg: c, kernels: c.Device.Kernels(), arena: device.NewArena(c.Device)}
}

// begin prepares a run.
func (c *courier) begin(p *program, micros []Micro, training bool) {
	c.program, c.micros, c.training, c.posted = p, micros, training, 0
	if c.boundaries == nil {
		c.boundaries = make([]*boundary, len(p.owners))
	}
	for s := range len(p.owners) - 1 {
		here, there := p.owners[s], p.owners[s+1]
		if here != p.rank && there != p.rank {
			continue
		}
		if c.boundaries[s] == nil {
			b := &boundary{specs: map[specKey]*spec{}, local: here == there, peer: there}
			if there == p.rank {
				b.peer = here
			}
			b.near = slices.ContainsFunc(c.cfg.Pipe.Hosts(), func(host []int) bool {
				return slices.Contains(host, here) && slices.Contains(host, there)
			})
			c.boundaries[s] = b
		}
		c.boundaries[s].begin(len(micros))
	}
}

// place is the boundary and direction of a send or receive.
func (c *courier) place(a schedule.Action) (b *boundary, d direction, receives bool) {
	switch a.Kind {
	case schedule.SendForward:
		return c.boundaries[a.Stage], down, false
	case schedule.RecvForward:
		return c.boundaries[a.Stage-1], down, true
	case schedule.SendBackward:
		return c.boundaries[a.Stage-1], up, false
	default:
		return c.boundaries[a.Stage], up, true
	}
}

func (c *courier) key(micro int) specKey { return specKey{c.micros[micro].Samples, c.training} }

// exchange starts the sends and receives at list[from:to], which have one peer.
func (c *courier) exchange(ctx context.Context, from, to int) error {
	if err := c.announce(ctx, from, to); err != nil {
		return err
	}
	for _, a := range c.program.list[from:to] {
		if b, d, receives := c.place(a); !receives {
			p := b.parcels[d][a.Micro]
			b.parcels[d][a.Micro] = nil
			b.leaving[d] = append(b.leaving[d], p)
			c.add(b, p, false)
		}
	}
	if !c.cfg.Paired {
		if err := c.send(ctx); err != nil {
			return err
		}
	}
	for ; c.posted < to; c.posted++ {
		a := c.program.list[c.posted]
		b, d, receives := c.place(a)
		if c.posted < from || !receives {
			continue
		}
		if b.specs[c.key(a.Micro)] == nil {
			c.start(ctx) // what comes before
			if err := c.listen(ctx, b, c.key(a.Micro)); err != nil {
				return err
			}
		}
		c.receive(ctx, b, d, a.Micro)
	}
	c.start(ctx)
	for _, a := range c.program.list[from:to] {
		if b, d, receives := c.place(a); !receives {
			if err := c.reap(ctx, b, d, mostLeaving); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive adds a receive, of a spec that is known, to the batch. The head is received
// by itself, so that its coming is seen.
func (c *courier) receive(ctx context.Context, b *boundary, d direction, micro int) {
	p := c.expect(b.specs[c.key(micro)], d)
	b.parcels[d][micro] = p
	if n := c.head(p); n > 0 {
		c.start(ctx) // what comes before
		c.first[0] = collective.PointToPoint{Peer: b.peer, Recv: true, Buf: p.bufs[0].Slice(0, n)}
		p.head = c.cfg.Pipe.Exchange(ctx, c.first[:])
	}
	c.add(b, p, true)
}

// head is how many elements of a parcel's first buffer travel ahead.
func (c *courier) head(p *parcel) int {
	if c.cfg.Paired || len(p.bufs) == 0 {
		return 0
	}
	return min(headBytes/p.bufs[0].Type.Size(), p.bufs[0].Len)
}

func (c *courier) add(b *boundary, p *parcel, recv bool) {
	head := c.head(p)
	for _, buf := range p.bufs {
		lo := 0
		if head > 0 && !recv {
			c.batch = append(c.batch, collective.PointToPoint{Peer: b.peer, Buf: buf.Slice(0, head)})
		}
		lo, head = head, 0
		piece := c.piece(buf)
		for ; lo < buf.Len; lo += piece {
			c.batch = append(c.batch, collective.PointToPoint{Peer: b.peer, Recv: recv, Buf: buf.Slice(lo, min(lo+piece, buf.Len))})
		}
	}
	c.fresh = append(c.fresh, p)
}

// send begins what was added, sends all. Where they need nobody's help it waits for
// them: else this rank's next computation would take the processor from the
// goroutine that sends, for as long as the system lets it go on, while the peer waits.
func (c *courier) send(ctx context.Context) error {
	near := true
	for _, part := range c.batch {
		near = near && part.Buf.Size() < collective.EagerSize && c.near(part.Peer)
	}
	w := c.start(ctx)
	if !near {
		return nil
	}
	return c.wait(ctx, w, observe.Exposed)
}

func (c *courier) near(peer int) bool {
	return slices.ContainsFunc(c.boundaries, func(b *boundary) bool { return b != nil && b.near && b.peer == peer })
}

// piece is how many elements of a buffer travel in one message.
func (c *courier) piece(buf device.Buf) int {
	if c.cfg.Paired {
		return max(buf.Len, 1)
	}
	return pieceOf(buf)
}

// start begins what was added and returns its Work, nil for nothing.
func (c *courier) start(ctx context.Context) (w *collective.Work) {
	if len(c.batch) > 0 {
		w = c.cfg.Pipe.Exchange(ctx, c.batch)
		for _, p := range c.fresh {
			p.work = w
		}
	}
	c.batch, c.fresh = c.batch[:0], c.fresh[:0]
	return w
}

// announce tells the receivers of the sends at list[from:to] what they bring, if
// they do not know. The sends that follow report its errors.
func (c *courier) announce(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		a := c.program.list[i]
		b, d, receives := c.place(a)
		s := b.specs[c.key(a.Micro)]
		if receives || d == up || s.known {
			continue
		}
		head, err := s.encode()
		if err != nil {
			return err
		}
		s.known = true
		c.cfg.Pipe.Exchange(ctx, []collective.PointToPoint{{Peer: b.peer, Buf: head}})
	}
	return nil
}

// listen waits to be told what micro-batches of a size bring.
func (c *courier) listen(ctx context.Context, b *boundary, key specKey) (err error) {
	head := device.FromI32(make([]int32, specLen))
	if err := c.wait(ctx, c.cfg.Pipe.Exchange(ctx, []collective.PointToPoint{{Peer: b.peer, Recv: true, Buf: head}}), observe.Bubble); err != nil {
		return fmt.Errorf("agreeing on shapes: %w", err)
	}
	b.specs[key], err = decodeSpec(head)
	return err
}

// postAhead posts the receives that come before the end of the computation after
// the one at list[i], as far as it is known what they bring.
func (c *courier) postAhead(ctx context.Context, i int) error {
	if c.cfg.Paired {
		return nil
	}
	list := c.program.list
	c.posted = max(c.posted, i)
	for computations := 0; c.posted < len(list) && computations < 3; c.posted++ {
		a := list[c.posted]
		if a.Kind <= schedule.Weight {
			computations++
		}
		if a.Kind != schedule.RecvForward && a.Kind != schedule.RecvBackward {
			continue
		}
		b, d, _ := c.place(a)
		if b.specs[c.key(a.Micro)] == nil {
			return nil
		}
		c.receive(ctx, b, d, a.Micro)
		c.start(ctx)
	}
	return nil
}
