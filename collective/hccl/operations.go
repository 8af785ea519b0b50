//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// pieceSize cuts vectors that every rank holds whole: the next piece is copied
// while this one is in the operation.
const pieceSize = 4 << 20

var errUnreadable = errors.New("a buffer that the host cannot read")

// run turns a call into passes and sends them on their way.
func (c *Comm) run(p *pending) error {
	switch call := &p.call; {
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case call.Kind.Rooted() && (call.Root < 0 || call.Root >= len(c.ranks)):
		return fmt.Errorf("no rank %d among %d", call.Root, len(c.ranks))
	case !c.knows(call.In) || !c.knows(call.Out):
		return errUnreadable
	case call.In.Handle != 0 || call.Out.Handle != 0:
		if what := c.onHost(call); what != "" {
			return fmt.Errorf("%s is for the host's memory, not the device's", what)
		}
	}
	if p.call.Codec != nil {
		return c.coded(p)
	}
	switch p.call.Kind {
	case plan.Barrier:
		return c.fly(p, &pass{op: "HcclBarrier", last: true, call: func(_, _ uintptr, s ascend.Stream) int32 {
			return ascend.Call(c.library.HcclBarrier, c.handle, uintptr(s))
		}})
	case plan.AllReduce, plan.Reduce, plan.Broadcast:
		return c.whole(p)
	case plan.AllGather:
		return c.allGather(p)
	case plan.ReduceScatter:
		return c.reduceScatter(p)
	case plan.Gather:
		return c.gather(p)
	case plan.Scatter:
		return c.scatter(p)
	case plan.AllToAll:
		return c.allToAll(p)
	}
	return fmt.Errorf("HCCL has no %v", p.call.Kind)
}

// output is where the result of a call on whole vectors goes.
func output(call *collective.Call) device.Buf {
	if call.Out.Len > 0 {
		return call.Out
	}
	return call.In
}

func start(b device.Buf) uintptr {
	if b.Handle != 0 {
		return b.Handle
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
}

// knows reports whether a buffer can be sent: the host's, or memory of Device.Alloc.
func (c *Comm) knows(b device.Buf) bool {
	return b.Len == 0 || b.Bytes() != nil || c.device.Owns(b)
}

// onHost names the part of a call that the host does, or "".
func (c *Comm) onHost(call *collective.Call) string {
	switch {
	case call.Codec != nil:
		return "a codec"
	case call.Kind.Reduces() && call.Op == collective.Mean:
		return "a mean, which is divided on the host,"
	case call.Kind.Reduces() && c.inRing(call):
		return "a sum in the order of a ring"
	case call.Kind.Reduces() && c.folds(call):
		return "a reduction that the chip lacks, or rounds at every addition,"
	case call.Kind == plan.AllGather || call.Kind == plan.ReduceScatter:
		whole := call.In.Len
		if call.Kind == plan.AllGather {
			whole = output(call).Len
		}
		bounds, err := c.cuts(call.InBounds, whole)
		if _, equal := widest(bounds); err == nil && !equal {
			return "a call of unequal parts"
		}
	}
	return ""
}

// send has a pass take its input from b: where it lies, if that is pinned.
func (c *Comm) send(w *pass, b device.Buf) {
	w.inBytes = b.Size()
	if b.Handle != 0 {
		w.source, w.from = start(b), ascend.DeviceToDevice
	} else if c.device.IsPinned(b.Bytes()) {
		w.source = start(b)
	} else if b.Len > 0 {
		w.fill = func(host []byte) { copy(host, b.Bytes()) }
	}
}

// receive has a pass leave its output in b, and finish it there.
func (c *Comm) receive(w *pass, b device.Buf, finish func(device.Buf)) {
	w.outBytes = b.Size()
	if b.Handle != 0 {
		w.target, w.to = start(b), ascend.DeviceToDevice
		return
	}
	pinned := c.device.IsPinned(b.Bytes())
	if pinned {
		w.target = start(b)
	}
	w.take = func(host []byte) error {
		if !pinned {
			copy(b.Bytes(), host)
		}
		if finish != nil {
			finish(b)
		}
		return nil
	}
}

// mean says how a sum becomes a mean: 16-bit floats are scaled before, others are
// divided after.
func (c *Comm) mean(op collective.Op, t device.Type) (scaled bool, finish func(device.Buf)) {
	switch {
	case op != collective.Mean:
		return false, nil
	case isHalf(t):
		return true, nil
	}
	return false, func(b device.Buf) { collective.Divide(b, len(c.ranks)) }
}

// whole does the operations on vectors that every rank holds whole.
func (c *Comm) whole(p *pending) error {
	call := &p.call
	in, out := call.In, output(call)
	if in.Len == 0 && c.rank != call.Root && call.Kind == plan.Broadcast {
		in = out
	}
	if out.Len != in.Len || out.Type != in.Type {
		return fmt.Errorf("input of %d %v, output of %d %v", in.Len, in.Type, out.Len, out.Type)
	}
	if call.Kind.Reduces() && c.folds(call) {
		return c.foldWhole(p)
	}
	if in.Len == 0 {
		p.end(nil)
		return nil
	}
	step := pieceSize / in.Type.Size()
	for lo := 0; lo < in.Len; lo += step {
		hi := min(lo+step, in.Len)
		w := c.piece(call, in.Slice(lo, hi), out.Slice(lo, hi))
		w.last = hi == in.Len
		p.sent, p.received = p.sent+w.inBytes, p.received+w.outBytes
		if err := c.fly(p, w); err != nil {
			return err
		}
	}
	return nil
}

// piece is the pass of a part of such a vector.
func (c *Comm) piece(call *collective.Call, in, out device.Buf) *pass {
	y, root, n := c.library, uintptr(uint32(call.Root)), uintptr(in.Len)
	typ, op := hcclType(in.Type), hcclOp(call.Op)
	isRoot := c.rank == call.Root
	w := &pass{needIn: in.Size(), needOut: in.Size()}
	if call.Kind == plan.Broadcast {
		moved := c.chip.moved(in.Type)
		w.op, w.onInput = "HcclBroadcast", true
		w.call = func(in, _ uintptr, s ascend.Stream) int32 {
			return ascend.Call(y.HcclBroadcast, in, n, moved, root, c.handle, uintptr(s))
		}
		if isRoot {
			c.send(w, in)
		}
		if !isRoot || start(in) != start(out) {
			c.receive(w, out, nil)
		}
		return w
	}
	scaled, finish := c.mean(call.Op, in.Type)
	if c.send(w, in); scaled {
		w.source = 0
		w.fill = func(host []byte) { scale(device.FromBytes(in.Type, host), in, len(c.ranks)) }
	}
	if call.Kind == plan.AllReduce {
		w.op = "HcclAllReduce"
		w.call = func(in, out uintptr, s ascend.Stream) int32 {
			return ascend.Call(y.HcclAllReduce, in, out, n, typ, op, c.handle, uintptr(s))
		}
		c.receive(w, out, finish)
		return w
	}
	w.op = "HcclReduce"
	w.call = func(in, out uintptr, s ascend.Stream) int32 {
		return ascend.Call(y.HcclReduce, in, out, n, typ, op, root, c.handle, uintptr(s))
	}
	if isRoot {
		c.receive(w, out, finish)
	}
	return w
}

// cuts returns the bounds of a vector's parts.
func (c *Comm) cuts(bounds []int, length int) ([]int, error) {
	if bounds == nil {
		return plan.Cut(length, len(c.ranks)), nil
	}
	if len(bounds) != len(c.ranks)+1 || bounds[0] != 0 || bounds[len(bounds)-1] != length || !slices.IsSorted(bounds) {
		return nil, fmt.Errorf("bounds %v do not cut %d elements in %d parts", bounds, length, len(c.ranks))
	}
	return bounds, nil
}

// checkPart refuses what is not as long as this rank's part.
func (c *Comm) checkPart(part device.Buf, bounds []int) error {
	if n := bounds[c.rank+1] - bounds[c.rank]; part.Len != n {
		return fmt.Errorf("a part of %d elements where %d are this rank's", part.Len, n)
	}
	return nil
}

// widest is the length of the longest part; equal tells whether all are.
func widest(bounds []int) (most int, equal bool) {
	equal = true
	for i := 1; i < len(bounds); i++ {
		n := bounds[i] - bounds[i-1]
		equal = equal && n == bounds[1]-bounds[0]
		most = max(most, n)
	}
	return most, equal
}

func (c *Comm) allGather(p *pending) error {
	call := &p.call
	whole := output(call)
	bounds, err := c.cuts(call.InBounds, whole.Len)
	if err != nil {
		return err
	}
	part := call.In
	if call.Out.Len == 0 {
		part = whole.Slice(bounds[c.rank], bounds[c.rank+1])
	}
	if err := c.checkPart(part, bounds); err != nil {
		return err
	}
	if whole.Len == 0 {
		p.end(nil)
		return nil
	}
	w := c.gathering(whole, part, bounds)
	w.last = true
	p.sent, p.received = w.inBytes, w.outBytes
	return c.fly(p, w)
}
