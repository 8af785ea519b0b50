package parallel

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/observe"
)

// Names of spans.
const (
	waitStage   = "wait for a stage"
	waitMessage = "wait for a message"
)

// step is what spans are recorded under: an evaluation belongs to no step.
func (c *courier) step() int {
	if !c.training {
		return 0
	}
	return c.cfg.Fusion.Completed() + 1
}

// await waits for a parcel. Until the peer begins to send it that is the schedule's
// idle time, and then communication; where the head does not travel by itself, it is
// communication altogether.
func (c *courier) await(ctx context.Context, p *parcel) error {
	if err := c.wait(ctx, p.head, observe.Bubble); err != nil {
		return err
	}
	return c.wait(ctx, p.work, observe.Exposed)
}

// wait waits for a message, if there is one.
func (c *courier) wait(ctx context.Context, w *collective.Work, kind observe.Kind) error {
	if w == nil {
		return nil
	}
	name := waitStage
	if kind == observe.Exposed {
		name = waitMessage
	}
	start := c.cfg.Events.Now()
	err := w.Wait(ctx)
	c.waited = c.cfg.Events.Now()
	c.cfg.Events.Record(observe.Span{Kind: kind, Lane: "compute", Name: name, Start: start, End: c.waited, Step: c.step()})
	return err
}

// reap takes back the memory of the oldest parcels sent, until at most most are
// under way.
func (c *courier) reap(ctx context.Context, b *boundary, d direction, most int) error {
	for len(b.leaving[d]) > most {
		p := b.leaving[d][0]
		if err := c.wait(ctx, p.work, observe.Exposed); err != nil {
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
