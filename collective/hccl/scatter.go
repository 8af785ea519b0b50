//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

func (c *Comm) reduceScatter(p *pending) error {
	call := &p.call
	in := call.In
	bounds, err := c.cuts(call.InBounds, in.Len)
	if err != nil {
		return err
	}
	own := call.Out
	if own.Len == 0 {
		own = in.Slice(bounds[c.rank], bounds[c.rank+1])
	}
	if err := c.checkPart(own, bounds); err != nil {
		return err
	}
	if in.Len == 0 {
		p.end(nil)
		return nil
	}
	if c.folds(call) {
		w := c.folding(call, own, bounds)
		w.last = true
		p.sent, p.received = w.inBytes, w.outBytes
		return c.fly(p, w)
	}
	scaled, finish := c.mean(call.Op, in.Type)
	w := c.reducing(call.Op, in, own, bounds, scaled)
	w.last = true
	c.receive(w, own, finish)
	p.sent, p.received = w.inBytes, w.outBytes
	return c.fly(p, w)
}

// reducing is the pass of a reduce-scatter on the device, whose input may be
// scaled before. Parts of several sizes are as gathering's.
func (c *Comm) reducing(o collective.Op, in, own device.Buf, bounds []int, scaled bool) *pass {
	most, equal := widest(bounds)
	typ, op := hcclType(in.Type), hcclOp(o)
	if !equal && c.library.newer.HcclReduceScatterV != 0 && c.chip.reducesParts(in.Type, o) && c.chip.hasParts(c.hosts) {
		k := countsOf(bounds)
		w := &pass{op: "HcclReduceScatterV", call: func(in, out uintptr, s ascend.Stream) int32 {
			return ascend.Call(c.library.newer.HcclReduceScatterV, in, k.counts(), k.places(), out, uintptr(own.Len), typ, op, c.handle, uintptr(s))
		}}
		if c.send(w, in); scaled {
			w.source = 0
			w.fill = func(host []byte) { scale(device.FromBytes(in.Type, host), in, len(c.ranks)) }
		}
		return w
	}
	size := most * in.Type.Size()
	w := &pass{op: "HcclReduceScatter", needIn: size * len(c.ranks), needOut: size}
	w.call = func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(c.library.HcclReduceScatter, in, out, uintptr(most), typ, op, c.handle, uintptr(s))
	}
	if equal && !scaled {
		c.send(w, in)
		return w
	}
	w.inBytes = size * len(c.ranks)
	w.fill = func(host []byte) {
		for r := range c.ranks {
			to, from := host[r*size:(r+1)*size], in.Slice(bounds[r], bounds[r+1])
			if scaled {
				scale(device.FromBytes(in.Type, to[:from.Size()]), from, len(c.ranks))
			} else {
				copy(to, from.Bytes())
			}
			clear(to[from.Size():])
		}
	}
	return w
}

// scatter is HCCL's where the bounds, which all ranks have alike, cut equal parts.
// Else it is an all-to-all in which only the root has something: without bounds a
// rank knows its own part only.
func (c *Comm) scatter(p *pending) error {
	call := &p.call
	isRoot, own, bounds := c.rank == call.Root, call.Out, call.InBounds
	if isRoot {
		var err error
		if bounds, err = c.cuts(bounds, call.In.Len); err != nil {
			return err
		}
		if own.Len == 0 {
			own = call.In.Slice(bounds[c.rank], bounds[c.rank+1])
		}
	} else {
		own = output(call)
	}
	known := len(call.InBounds) == len(c.ranks)+1
	if known || isRoot {
		if err := c.checkPart(own, bounds); err != nil {
			return err
		}
	}
	_, equal := widest(call.InBounds)
	switch {
	case known && equal && c.library.newer.HcclScatter != 0:
		return c.scatterEqual(p, own)
	case isRoot:
		return c.flyParts(p, typeOf(call), call.In, own, countsOf(bounds), c.only(call.Root, own.Len))
	}
	return c.flyParts(p, typeOf(call), device.Buf{}, own, c.only(0, 0), c.only(call.Root, own.Len))
}

// scatterEqual scatters parts of one size, of which own is this rank's.
func (c *Comm) scatterEqual(p *pending, own device.Buf) error {
	if own.Len == 0 {
		p.end(nil)
		return nil
	}
	call := &p.call
	moved, root := c.chip.moved(typeOf(call)), uintptr(uint32(call.Root))
	w := &pass{op: "HcclScatter", last: true, call: func(in, out uintptr, s ascend.Stream) int32 {
		if c.rank != call.Root {
			in = 0
		}
		return ascend.Call(c.library.newer.HcclScatter, in, out, uintptr(own.Len), moved, root, c.handle, uintptr(s))
	}}
	if c.rank == call.Root {
		c.send(w, call.In)
	}
	c.receive(w, own, nil)
	p.sent, p.received = w.inBytes, w.outBytes
	return c.fly(p, w)
}
