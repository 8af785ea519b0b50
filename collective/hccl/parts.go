//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// counts are what an all-to-all of unequal parts moves, as HCCL takes it: for each
// rank how many elements and from where. The arrays are kept until the stream has
// passed the operation, which may read them late.
type counts struct{ n, at []uint64 }

// countsOf makes them of bounds.
func countsOf(bounds []int) counts {
	n := len(bounds) - 1
	k := counts{make([]uint64, n), make([]uint64, n)}
	for r := range n {
		k.n[r], k.at[r] = uint64(bounds[r+1]-bounds[r]), uint64(bounds[r])
	}
	return k
}

// only has all elements for one rank.
func (c *Comm) only(rank, n int) counts {
	k := counts{make([]uint64, len(c.ranks)), make([]uint64, len(c.ranks))}
	k.n[rank] = uint64(n)
	return k
}

// unequal is the pass of an all-to-all of parts of any size; the caller says what
// is copied.
func (c *Comm) unequal(t device.Type, send, receive counts) *pass {
	moved := c.chip.moved(t)
	return &pass{op: "HcclAlltoAllV", call: func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(c.library.HcclAlltoAllV, in, send.counts(), send.places(), moved, out, receive.counts(), receive.places(), moved, c.handle, uintptr(s))
	}}
}

// gather is an all-to-all in which everybody has something for the root only.
func (c *Comm) gather(p *pending) error {
	call := &p.call
	part := call.In
	if c.rank != call.Root {
		return c.flyParts(p, typeOf(call), part, device.Buf{}, c.only(call.Root, part.Len), c.only(0, 0))
	}
	whole := output(call)
	bounds, err := c.cuts(call.InBounds, whole.Len)
	if err != nil {
		return err
	}
	if call.Out.Len == 0 {
		part = whole.Slice(bounds[c.rank], bounds[c.rank+1])
	}
	if err := c.checkPart(part, bounds); err != nil {
		return err
	}
	return c.flyParts(p, typeOf(call), part, whole, c.only(call.Root, part.Len), countsOf(bounds))
}

func (c *Comm) allToAll(p *pending) error {
	call := &p.call
	in, out, n := call.In, output(call), len(c.ranks)
	if b := call.OutBounds; len(b) > 0 && b[len(b)-1] == 0 {
		out = call.Out // not in place: this rank receives nothing
	}
	if call.InBounds == nil && call.OutBounds == nil && in.Len%n == 0 && out.Len == in.Len {
		if in.Len == 0 {
			p.end(nil)
			return nil
		}
		moved, each := c.chip.moved(in.Type), uintptr(in.Len/n)
		w := &pass{op: "HcclAlltoAll", last: true, call: func(in, out uintptr, s ascend.Stream) int32 {
			return ascend.Call(c.library.HcclAlltoAll, in, each, moved, out, each, moved, c.handle, uintptr(s))
		}}
		c.send(w, in)
		c.receive(w, out, nil)
		p.sent, p.received = w.inBytes, w.outBytes
		return c.fly(p, w)
	}
	from, err := c.cuts(call.InBounds, in.Len)
	if err != nil {
		return err
	}
	back := call.OutBounds
	if back == nil && call.Out.Len == 0 {
		back = from
	}
	to, err := c.cuts(back, out.Len)
	if err != nil {
		return err
	}
	return c.flyParts(p, typeOf(call), in, out, countsOf(from), countsOf(to))
}

// typeOf is a call's type; an empty part still has one.
func typeOf(call *collective.Call) device.Type {
	switch {
	case call.In.Len > 0:
		return call.In.Type
	case call.Out.Len > 0:
		return call.Out.Type
	}
	return max(call.In.Type, call.Out.Type)
}

// flyParts sends an all-to-all of unequal parts, the last pass of its call.
func (c *Comm) flyParts(p *pending, t device.Type, in, out device.Buf, send, receive counts) error {
	w := c.unequal(t, send, receive)
	w.last = true
	c.send(w, in)
	if out.Len > 0 {
		c.receive(w, out, nil)
	}
	p.sent, p.received = w.inBytes, w.outBytes
	return c.fly(p, w)
}
