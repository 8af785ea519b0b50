package parallel

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
)

// Partners are the ranks of a Comm as nn.Partners: they share the layers of one
// stage (tensor parallelism). The Comm is for their sums alone, so that these do
// not wait behind others. Partners are used by one goroutine.
type Partners struct {
	// Events, when set, receives a span for each time that a pass waits for a sum.
	Events *observe.Recorder

	ctx       context.Context
	comm      collective.Comm
	algorithm string
	silent    bool
	free      []*partnerCall
}

var _ nn.Partners = (*Partners)(nil)

// NewPartners returns the partners that comm joins; ctx bounds their calls.
// Deterministic ones add up in an order that depends on nothing but how many
// they are and what they add up.
func NewPartners(ctx context.Context, comm collective.Comm, deterministic bool) *Partners {
	p := &Partners{ctx: ctx, comm: comm}
	if deterministic {
		p.algorithm = "ring"
	}
	return p
}

// Rank implements nn.Partners.
func (p *Partners) Rank() int { return p.comm.Rank() }

// Size implements nn.Partners.
func (p *Partners) Size() int { return p.comm.Size() }

// Silent runs f, in which sums are left as they are and nothing is sent: for a
// pass that finds out what it takes.
func (p *Partners) Silent(f func() error) error {
	p.silent = true
	defer func() { p.silent = false }()
	return f()
}

// partnerCall is a sum in flight.
type partnerCall struct {
	partners *Partners
	work     *collective.Work // nil: silent
}

// Start implements nn.Partners.
func (p *Partners) Start(op device.ReduceOp, buf device.Buf, label string) nn.Pending {
	c := p.take()
	if !p.silent {
		c.work = p.comm.Start(p.ctx, collective.Call{Kind: plan.AllReduce, Op: operation(op), In: buf, Algorithm: p.algorithm, Label: label})
	}
	return c
}

func operation(op device.ReduceOp) collective.Op {
	return [...]collective.Op{device.Sum: collective.Sum, device.Prod: collective.Prod, device.Max: collective.Max, device.Min: collective.Min}[op]
}

// take returns a record; Wait gives it back.
func (p *Partners) take() *partnerCall {
	n := len(p.free)
	if n == 0 {
		return &partnerCall{partners: p}
	}
	c := p.free[n-1]
	p.free = p.free[:n-1]
	return c
}

// Wait implements nn.Pending.
func (c *partnerCall) Wait() (err error) {
	p := c.partners
	if c.work != nil {
		start := p.Events.Now()
		err = c.work.Wait(p.ctx)
		p.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for partners", Start: start, End: p.Events.Now()})
	}
	c.work = nil
	p.free = append(p.free, c)
	return err
}
