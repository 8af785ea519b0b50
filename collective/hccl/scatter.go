//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"fmt"

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
	if own.Len != bounds[c.rank+1]-bounds[c.rank] {
		return fmt.Errorf("a part of %d elements where %d are this rank's", own.Len, bounds[c.rank+1]-bounds[c.rank])
	}
	if in.Len == 0 {
		p.end(nil)
		return nil
	}
	if !c.onDevice(in.Type, call.Op) {
		w := c.folding(call.Op, in, own, bounds)
		w.last = true
		p.sent, p.received = w.inBytes, w.outBytes
		return c.fly(p, w)
	}
	most, equal := widest(bounds)
	size := most * in.Type.Size()
	typ, op := hcclType(in.Type), hcclOp(call.Op)
	w := &pass{op: "HcclReduceScatter", last: true, needIn: size * len(c.ranks), needOut: size}
	w.call = func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(c.library.HcclReduceScatter, in, out, uintptr(most), typ, op, c.handle, uintptr(s))
	}
	finish := c.mean(call.Op)
	scaled := call.Op == collective.Mean && isHalf(in.Type)
	if scaled {
		finish = nil
	}
	if equal && !scaled {
		c.send(w, in)
	} else {
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
	}
	c.receive(w, own, finish)
	p.sent, p.received = w.inBytes, w.outBytes
	return c.fly(p, w)
}
