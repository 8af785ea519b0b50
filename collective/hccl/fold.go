//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

func isHalf(t device.Type) bool { return t == device.F16 || t == device.BF16 }

// onDevice reports whether HCCL does a reduction: the chip can, and it does not
// round 16-bit floats at every addition where nobody asked for that.
func (c *Comm) onDevice(t device.Type, op collective.Op) bool {
	rounds := isHalf(t) && op != collective.Max && op != collective.Min
	return c.chip.reduces(t, op) && (!rounds || c.config.ReduceHalves)
}

// folding is a pass that leaves in own the reduction of all ranks' slices of it:
// they come by an all-to-all and are folded in the order of ranks.
func (c *Comm) folding(op collective.Op, in, own device.Buf, bounds []int) *pass {
	n := len(c.ranks)
	to := make([]int, n+1)
	for r := range to {
		to[r] = r * own.Len
	}
	w := c.unequal(in.Type, countsOf(bounds), countsOf(to))
	c.send(w, in)
	w.outBytes = n * own.Size()
	w.take = func(host []byte) error {
		all := device.FromBytes(in.Type, host)
		parts := make([]device.Buf, n)
		for r := range parts {
			parts[r] = all.Slice(r*own.Len, (r+1)*own.Len)
		}
		collective.FoldParts(c.config.Reducer, op, own, parts)
		return nil
	}
	return w
}

// foldWhole composes an all-reduce, or reduce, of slices that are folded and then
// gathered.
func (c *Comm) foldWhole(p *pending) error {
	in, out := p.call.In, output(&p.call)
	if in.Len == 0 {
		p.end(nil)
		return nil
	}
	bounds := plan.Cut(in.Len, len(c.ranks))
	own, err := device.HostAlloc(in.Type, bounds[c.rank+1]-bounds[c.rank])
	if err != nil {
		return err
	}
	first := c.folding(p.call.Op, in, own, bounds)
	if err := c.through(p, first); err != nil {
		return err
	}
	second := c.gathering(out, own, bounds)
	second.last = true
	p.sent, p.received = first.inBytes+second.inBytes, first.outBytes+second.outBytes
	return c.fly(p, second)
}
