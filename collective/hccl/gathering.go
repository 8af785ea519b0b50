//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// gathering is the pass of an all-gather. Parts of several sizes go as they are
// where the release and the chip can, else padded: all ranks decide alike, as
// bounds and hosts are the same everywhere.
func (c *Comm) gathering(whole, part device.Buf, bounds []int) *pass {
	most, equal := widest(bounds)
	if !equal && c.library.newer.HcclAllGatherV != 0 && c.chip.hasParts(c.hosts) {
		return c.gatheringParts(whole, part, bounds)
	}
	size := most * whole.Type.Size()
	moved := c.chip.moved(whole.Type)
	w := &pass{op: "HcclAllGather", needIn: size, needOut: size * len(c.ranks)}
	w.call = func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(c.library.HcclAllGather, in, out, uintptr(most), moved, c.handle, uintptr(s))
	}
	if equal {
		c.send(w, part)
		c.receive(w, whole, nil)
		return w
	}
	w.inBytes, w.outBytes = size, size*len(c.ranks)
	w.fill = func(host []byte) { clear(host[copy(host, part.Bytes()):]) }
	w.take = func(host []byte) error {
		for r := range c.ranks {
			copy(whole.Slice(bounds[r], bounds[r+1]).Bytes(), host[r*size:])
		}
		return nil
	}
	return w
}

// gatheringParts is gathering of parts as they are.
func (c *Comm) gatheringParts(whole, part device.Buf, bounds []int) *pass {
	k, moved := countsOf(bounds), c.chip.moved(whole.Type)
	w := &pass{op: "HcclAllGatherV", call: func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(c.library.newer.HcclAllGatherV, in, uintptr(part.Len), out, k.counts(), k.places(), moved, c.handle, uintptr(s))
	}}
	c.send(w, part)
	c.receive(w, whole, nil)
	return w
}

// counts and places are the arrays' addresses. They are kept with the pass, until
// the stream has passed the operation, which may read them late.
func (k counts) counts() uintptr { return uintptr(unsafe.Pointer(&k.n[0])) }
func (k counts) places() uintptr { return uintptr(unsafe.Pointer(&k.at[0])) }
