package collective

import (
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// ValidateCoded refuses a call with a Codec that has no meaning. A Group does so by
// itself; it is for Comms that are none.
func ValidateCoded(c *Call) error {
	switch {
	case c.Kind != plan.AllReduce:
		return fmt.Errorf("%v with the wire format %s: formats are for all-reduce", c.Kind, c.Codec.Name())
	case c.Op != Sum && c.Op != Mean:
		return fmt.Errorf("%v with the wire format %s: formats are for sum and mean", c.Op, c.Codec.Name())
	case c.typ() != device.F32:
		return fmt.Errorf("the wire format %s is for f32, not %v", c.Codec.Name(), c.typ())
	case c.Algorithm != "" && c.Algorithm != "auto":
		return fmt.Errorf("algorithm %s with the wire format %s, which has an algorithm of its own (all-to-all, sum by the owner, all-gather): name one of the two",
			c.Algorithm, c.Codec.Name())
	case c.InBounds != nil || c.OutBounds != nil:
		return fmt.Errorf("bounds with the wire format %s, which cuts the vector by itself", c.Codec.Name())
	case c.Out.Len != 0 && c.Out.Len != c.In.Len:
		return fmt.Errorf("input of %d elements, output of %d", c.In.Len, c.Out.Len)
	}
	return nil
}

// codes reports whether a call's values are encoded: not where nothing is sent,
// or nothing from host to host.
func (g *Group) codes(c *Call) bool {
	return c.Codec != nil && len(g.ranks) > 1 && !(c.AcrossHosts && len(g.hosts) == 1)
}

// code carries out an action of the call's Codec, as a whole.
func (e *executor) code(a *action) error {
	p := &e.receive.pace
	p.needs = a.needs
	e.guard.waiting.Store(-1)
	n := a.at.size()
	if err := p.ready(e.group.ctx, 0, n); err != nil {
		return err
	}
	at, from := e.buffer(a.at), e.buffer(a.from)
	if a.from.size() > 0 && n > 0 {
		switch a.kind {
		case beginAction:
			e.codec.Begin(at.F32(), a.at.lo)
		case encodeAction:
			e.codec.Encode(at.Bytes(), from.F32(), a.from.lo)
		case encodeSumAction:
			e.codec.EncodeSum(at.Bytes(), from.F32(), a.from.lo)
		case decodeAction:
			e.codec.Decode(at.F32(), from.Bytes())
		case decodeAddAction:
			e.codec.DecodeAdd(at.F32(), from.Bytes())
		}
	}
	p.done(n)
	return nil
}
