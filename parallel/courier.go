package parallel

import (
	"context"
	"fmt"

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
}

// mostLeaving is how many parcels of a direction may wait for their receiver at
// a boundary; the schedule is proved to move on with sends that block.
const mostLeaving = 4

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
	list := c.program.list
	c.batch = c.batch[:0]
	for i := from; i < to; i++ {
		if b, d, receives := c.place(list[i]); !receives {
			c.add(b, b.parcels[d][list[i].Micro], false)
		}
	}
	var sending *collective.Work
	if !c.cfg.Paired {
		sending = c.start(ctx)
		c.batch = c.batch[:0]
	}
	if err := c.listen(ctx, from, to); err != nil {
		return err
	}
	for i := max(from, c.posted); i < to; i++ {
		if b, d, receives := c.place(list[i]); receives {
			p := c.expect(b.specs[c.key(list[i].Micro)], d)
			b.parcels[d][list[i].Micro] = p
			c.add(b, p, true)
		}
	}
	receiving := c.start(ctx)
	if c.cfg.Paired {
		sending = receiving
	}
	return c.underWay(ctx, from, to, sending, receiving)
}

// underWay notes the works of what exchange has started.
func (c *courier) underWay(ctx context.Context, from, to int, sending, receiving *collective.Work) error {
	for i := from; i < to; i++ {
		a := c.program.list[i]
		b, d, receives := c.place(a)
		switch {
		case receives && i >= c.posted:
			b.parcels[d][a.Micro].work = receiving
		case !receives:
			p := b.parcels[d][a.Micro]
			p.work, b.parcels[d][a.Micro] = sending, nil
			b.leaving[d] = append(b.leaving[d], p)
			if err := c.reap(ctx, b, d, mostLeaving); err != nil {
				return err
			}
		}
	}
	c.posted = max(c.posted, to)
	return nil
}

func (c *courier) add(b *boundary, p *parcel, recv bool) {
	for _, buf := range p.bufs {
		c.batch = append(c.batch, collective.PointToPoint{Peer: b.peer, Recv: recv, Buf: buf})
	}
}

// start begins what was added to the batch.
func (c *courier) start(ctx context.Context) *collective.Work {
	if len(c.batch) == 0 {
		return nil
	}
	return c.cfg.Pipe.Exchange(ctx, c.batch)
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

// listen waits to be told what receives at list[from:to] bring, if that is not
// known.
func (c *courier) listen(ctx context.Context, from, to int) (err error) {
	for i := max(from, c.posted); i < to; i++ {
		a := c.program.list[i]
		b, d, receives := c.place(a)
		key := c.key(a.Micro)
		if !receives || d == up || b.specs[key] != nil {
			continue
		}
		head := device.FromI32(make([]int32, specLen))
		if err := c.wait(ctx, c.cfg.Pipe.Exchange(ctx, []collective.PointToPoint{{Peer: b.peer, Recv: true, Buf: head}})); err != nil {
			return fmt.Errorf("agreeing on shapes: %w", err)
		}
		if b.specs[key], err = decodeSpec(head); err != nil {
			return err
		}
	}
	return nil
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
		s := b.specs[c.key(a.Micro)]
		if s == nil {
			return nil
		}
		p := c.expect(s, d)
		c.batch = c.batch[:0]
		c.add(b, p, true)
		p.work = c.start(ctx)
		b.parcels[d][a.Micro] = p
	}
	return nil
}

// wait waits for a message.
func (c *courier) wait(ctx context.Context, w *collective.Work) error {
	if w == nil {
		return nil
	}
	start := c.cfg.Events.Now()
	err := w.Wait(ctx)
	c.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for a stage", Start: start, End: c.cfg.Events.Now(), Step: c.cfg.Fusion.Completed() + 1})
	return err
}

// reap takes back the memory of the oldest parcels sent, until at most most are
// under way.
func (c *courier) reap(ctx context.Context, b *boundary, d direction, most int) error {
	for len(b.leaving[d]) > most {
		p := b.leaving[d][0]
		if err := c.wait(ctx, p.work); err != nil {
			return err
		}
		c.give(p)
		b.leaving[d] = append(b.leaving[d][:0], b.leaving[d][1:]...)
	}
	return nil
}

// drain waits until everything sent has left.
func (c *courier) drain(ctx context.Context) error {
	for _, b := range c.boundaries {
		for d := down; b != nil && d <= up; d++ {
			if err := c.reap(ctx, b, d, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
