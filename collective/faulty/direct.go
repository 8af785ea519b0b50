package faulty

import (
	"context"

	"github.com/gradfusion/gradfusion/collective"
)

// direct is another one with the faults of its transport: a call is a message
// to everybody.
type direct struct {
	collective.Direct
	transport *Transport
	ctx       context.Context // ends with Abort
	abort     context.CancelFunc
}

// Direct implements collective.Transport.
func (t *Transport) Direct(id uint64, ranks []int) collective.Direct {
	inner := t.Transport.Direct(id, ranks)
	if inner == nil {
		return nil
	}
	d := &direct{Direct: inner, transport: t}
	d.ctx, d.abort = context.WithCancel(context.Background())
	return d
}

// Run implements collective.Direct.
func (d *direct) Run(c *collective.DirectCall) (bool, error) {
	t := d.transport
	e := t.strike(-1)
	if e.kill {
		return true, t.kill()
	}
	if err := t.running(d.ctx); err != nil {
		return true, err
	}
	if err := t.pause(d.ctx, e.delay+e.late); err != nil {
		return true, err
	}
	if e.drop { // the others wait for this rank
		select {
		case <-d.ctx.Done():
			return true, d.ctx.Err()
		case <-t.ctx.Done():
			return true, collective.ErrClosed
		}
	}
	if e.corrupt {
		bit := int(e.bit * float64(8*len(c.Head)))
		c.Head[bit/8] ^= 1 << (bit % 8)
	}
	return d.Direct.Run(c)
}

// Abort implements collective.Direct.
func (d *direct) Abort() {
	d.abort()
	d.Direct.Abort()
}

// Close implements collective.Direct.
func (d *direct) Close() {
	d.abort()
	d.Direct.Close()
}
