package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// packValues copies a stage's results for the next one.
func (c *courier) packValues(stage, micro int, vars []*nn.Var) error {
	b, key := c.boundaries[stage], c.key(micro)
	s := b.specs[key]
	if s == nil {
		s = describeVars(vars)
		b.specs[key] = s
	}
	if !s.matches(vars) {
		return fmt.Errorf("parallel: stage %d gives other shapes than for the micro-batches of %d samples before: shapes may depend on the number of samples only", stage, key.samples)
	}
	p := c.parcel(s)
	for i, v := range vars {
		p.bufs = append(p.bufs, c.copyOf(v.Value.Slice(0, v.Shape.Len()), c.typeOn(b, s.types[i])))
	}
	b.parcels[down][micro] = p
	return c.cfg.Device.Sync()
}

// packGradients copies the gradients of a stage's inputs for the stage before it,
// whose number is given.
func (c *courier) packGradients(stage, micro int, vars []*nn.Var) error {
	b := c.boundaries[stage]
	p := c.parcel(b.specs[c.key(micro)])
	for i, v := range vars {
		if !p.spec.needs[i] {
			continue
		}
		typ := c.typeOn(b, p.spec.types[i])
		if g := v.Grad(); !g.IsZero() {
			p.bufs = append(p.bufs, c.copyOf(g.Slice(0, v.Shape.Len()), typ))
			continue
		}
		zero := c.arena.Get(typ, v.Shape.Len())
		clear(zero.Bytes())
		p.bufs = append(p.bufs, zero)
	}
	b.parcels[up][micro] = p
	return c.cfg.Device.Sync()
}

// expect makes a parcel for what is going to be received.
func (c *courier) expect(s *spec, d direction) *parcel {
	p := c.parcel(s)
	for i, shape := range s.shapes {
		if d == down || s.needs[i] {
			p.bufs = append(p.bufs, c.arena.Get(c.wired(s.types[i]), shape.Len()))
		}
	}
	return p
}

// take returns what has come over a boundary for a micro-batch, in the types that
// the stage has, when it is there. The caller gives it back.
func (c *courier) take(ctx context.Context, stage int, d direction, micro int) (*parcel, error) {
	b := c.boundaries[stage]
	p := b.parcels[d][micro]
	if err := c.await(ctx, p); err != nil {
		return nil, err
	}
	b.parcels[d][micro] = nil
	for i, k := 0, 0; i < len(p.spec.shapes); i++ {
		if d == up && !p.spec.needs[i] {
			continue
		}
		if got := p.bufs[k]; got.Type != p.spec.types[i] {
			p.bufs[k] = c.copyOf(got, p.spec.types[i])
			c.arena.Put(got)
		}
		k++
	}
	return p, nil
}

// give takes a parcel's memory back.
func (c *courier) give(p *parcel) {
	for _, b := range p.bufs {
		c.arena.Put(b)
	}
	p.bufs, p.work, p.head, p.spec = p.bufs[:0], nil, nil, nil
	c.free = append(c.free, p)
}

func (c *courier) parcel(s *spec) *parcel {
	n := len(c.free)
	if n == 0 {
		return &parcel{spec: s}
	}
	p := c.free[n-1]
	c.free = c.free[:n-1]
	p.spec = s
	return p
}

func (c *courier) copyOf(b device.Buf, t device.Type) device.Buf {
	out := c.arena.Get(t, b.Len)
	if t == b.Type {
		c.kernels.Copy(out, b)
	} else {
		c.kernels.Cast(out, b)
	}
	return out
}

// typeOn is the type in which a tensor crosses a boundary.
func (c *courier) typeOn(b *boundary, t device.Type) device.Type {
	if b.local {
		return t
	}
	return c.wired(t)
}

func (c *courier) wired(t device.Type) device.Type {
	if t == device.F32 {
		return c.cfg.Wire
	}
	return t
}
