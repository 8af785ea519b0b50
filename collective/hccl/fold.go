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

// folds reports whether a call that reduces does so on the host.
func (c *Comm) folds(call *collective.Call) bool {
	return !c.onDevice(call.In.Type, call.Op) || c.inRing(call)
}

// inRing reports whether a call asks, by its algorithm, for sums in the order of a
// ring, where that makes another result than HCCL's, whose order is its own.
func (c *Comm) inRing(call *collective.Call) bool {
	return call.Algorithm == "ring" && call.Kind != plan.Reduce && len(c.ranks) > 2 &&
		(call.In.Type == device.F32 || call.In.Type == device.F64) && call.Op != collective.Max && call.Op != collective.Min
}

// folding is a pass that leaves in own the reduction of all ranks' slices of it:
// they come by an all-to-all and are folded in the order of ranks, or in that of a
// ring, where rank r's slice begins with what the rank after it has.
func (c *Comm) folding(call *collective.Call, own device.Buf, bounds []int) *pass {
	in, op, first := call.In, call.Op, 0
	if c.inRing(call) {
		first = c.rank + 1
	}
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
			from := (first + r) % n
			parts[r] = all.Slice(from*own.Len, (from+1)*own.Len)
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
	first := c.folding(&p.call, own, bounds)
	if err := c.through(p, first); err != nil {
		return err
	}
	second := c.gathering(out, own, bounds)
	second.last = true
	p.sent, p.received = first.inBytes+second.inBytes, first.outBytes+second.outBytes
	return c.fly(p, second)
}
