//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// A slot's head: the call's, then where the rank's buffers lie, then the outcome
// of Alloc.
const (
	inAt     = collective.HeadSize
	outAt    = inAt + 8
	statusAt = outAt + 8
)

// Run implements collective.Direct. A call has one synchronisation when it is
// small: its values travel with its head. Else all buffers that are shared are
// worked on in place, between that synchronisation and another; private ones go
// through windows.
func (d *domain) Run(c *collective.DirectCall) (handled bool, err error) {
	if err := d.transport.enter(context.Background()); err != nil {
		return false, err
	}
	defer d.transport.exit()
	d.busy.Lock()
	defer d.busy.Unlock()
	if err := d.ready(); err != nil {
		return false, err
	}
	in, out := d.buffers(c)
	if inline(c, in, out, len(d.ranks)) {
		if err := d.greet(c, 0, 0, d.contribution(c, in)); err != nil {
			return false, err
		}
		d.inline(c, out)
		return true, nil
	}
	inPlace, outPlace := d.transport.placeOf(in), d.transport.placeOf(out)
	clean := !d.lingering
	if !d.reachable(c, d.rank, inPlace, outPlace) {
		if err := d.openWindows(); err != nil {
			return false, err
		}
		if clean && stagesSum(c) {
			d.give(in.Bytes(), 0)
		}
	}
	if err := d.greet(c, inPlace, outPlace, nil); err != nil {
		return false, err
	}
	return d.work(c, in.Bytes(), out.Bytes(), clean)
}

// work carries out a large call, of which all ranks see alike what is shared.
func (d *domain) work(c *collective.DirectCall, in, out []byte, clean bool) (handled bool, err error) {
	reachable := 0
	for r := range d.ranks {
		if d.reachable(c, r, d.in[r], d.out[r]) {
			reachable++
		}
	}
	if reachable == len(d.ranks) {
		return d.workInPlace(c, in, out)
	}
	if err := d.openWindows(); err != nil {
		return false, err
	}
	if stagesSum(c) {
		return true, d.reduceStaged(c, in, out, clean && reachable == 0)
	}
	return true, d.moveStaged(c, in, out)
}

func (d *domain) workInPlace(c *collective.DirectCall, in, out []byte) (handled bool, err error) {
	switch c.Kind {
	case plan.AllReduce, plan.Reduce:
		return true, d.reduceInPlace(c, in)
	case plan.ReduceScatter:
		return true, d.scatterInPlace(c, in, out)
	case plan.AllGather:
		return true, d.gatherInPlace(c, in, out)
	case plan.Broadcast:
		return true, d.broadcastInPlace(c, out)
	}
	return false, nil
}

func stagesSum(c *collective.DirectCall) bool {
	return c.Kind == plan.AllReduce || c.Kind == plan.Reduce
}

// reachable reports whether the peers can do their work in a rank's buffers.
func (d *domain) reachable(c *collective.DirectCall, rank int, in, out int64) bool {
	switch c.Kind {
	case plan.AllReduce:
		return in != 0 && out != 0
	case plan.Reduce:
		return in != 0 && (rank != c.Root || out != 0)
	case plan.ReduceScatter:
		return in != 0
	case plan.AllGather:
		return out != 0
	case plan.Broadcast:
		return out != 0 && (rank != c.Root || in != 0)
	}
	return false
}

// ready opens the domain with its first call.
func (d *domain) ready() error {
	if d.stopped.Load() {
		return d.reason()
	}
	if d.words != nil {
		return nil
	}
	return d.open()
}

// buffers returns what the rank reads and what it writes.
func (d *domain) buffers(c *collective.DirectCall) (in, out device.Buf) {
	in, out = c.In, c.Out
	inPlace := c.Out.Len == 0
	switch c.Kind {
	case plan.AllReduce, plan.Reduce:
		if inPlace {
			out = in
		}
	case plan.Broadcast:
		if inPlace {
			out = in
		}
		if d.rank != c.Root {
			in = device.Buf{Type: c.Type}
		}
	case plan.AllGather:
		if inPlace {
			out, in = in, in.Slice(c.Parts[d.rank], c.Parts[d.rank+1])
		}
	case plan.ReduceScatter:
		if inPlace {
			out = in.Slice(c.Parts[d.rank], c.Parts[d.rank+1])
		}
	}
	return in, out
}

// inline reports whether every rank's values fit in a slot. All ranks find the
// same.
func inline(c *collective.DirectCall, in, out device.Buf, ranks int) bool {
	longest := max(in.Size(), out.Size())
	switch c.Kind {
	case plan.ReduceScatter:
		longest = in.Size()
	case plan.AllGather:
		longest = 0
		for r := range ranks {
			longest = max(longest, (c.Parts[r+1]-c.Parts[r])*c.Type.Size())
		}
	}
	return longest <= slotData
}

// contribution is what the others need of a small call.
func (d *domain) contribution(c *collective.DirectCall, in device.Buf) []byte {
	if c.Kind == plan.Barrier {
		return nil
	}
	return in.Bytes()
}

func (d *domain) slot(rank int) []byte { return d.slotOf(d.calls, rank) }

func (d *domain) slotOf(call uint32, rank int) []byte {
	at := d.transport.layout.slotAt(int(call&1), rank)
	return d.words[at : at+slotHead+slotData]
}

// greet begins a call: it shows the peers its head, where this rank's buffers
// lie, and the values of a small call, waits for theirs, and checks that they
// run the same. A slot is used again two calls later, when all have left this
// one: they have entered the next.
func (d *domain) greet(c *collective.DirectCall, in, out int64, values []byte) error {
	if d.calls++; d.calls%showEvery == 0 {
		d.showPlace()
	}
	own := d.slot(d.rank)
	copy(own, c.Head[:])
	binary.LittleEndian.PutUint64(own[inAt:], uint64(in))
	binary.LittleEndian.PutUint64(own[outAt:], uint64(out))
	copy(own[slotHead:], values)
	d.publish()
	count := d.published
	// Time passes until the peers' values are here.
	claim(unsafe.Pointer(&d.slotOf(d.calls+1, d.rank)[0]), slotHead+len(values))
	for i := 1; i < len(d.ranks); i++ {
		peer := (d.rank + i) % len(d.ranks)
		if err := d.awaitRank(c, peer, count); err != nil {
			return err
		}
		preload(unsafe.Pointer(&d.slot(peer)[0]), slotHead+len(values))
		if err := c.Check(peer, d.slot(peer)[:collective.HeadSize]); err != nil {
			return err
		}
	}
	d.lingering = false
	for r := range d.ranks {
		slot := d.slot(r)
		d.in[r] = int64(binary.LittleEndian.Uint64(slot[inAt:]))
		d.out[r] = int64(binary.LittleEndian.Uint64(slot[outAt:]))
	}
	return nil
}

// inline finishes a small call from the slots.
func (d *domain) inline(c *collective.DirectCall, out device.Buf) {
	if out.Len == 0 {
		return
	}
	b, size := out.Bytes(), c.Type.Size()
	switch c.Kind {
	case plan.AllReduce:
		d.combineSlots(c, b, 0)
	case plan.Reduce:
		if d.rank == c.Root {
			d.combineSlots(c, b, 0)
		}
	case plan.ReduceScatter:
		d.combineSlots(c, b, c.Parts[d.rank]*size)
	case plan.Broadcast:
		copy(b, d.slot(c.Root)[slotHead:])
	case plan.AllGather:
		for r := range d.ranks {
			copy(b[c.Parts[r]*size:c.Parts[r+1]*size], d.slot(r)[slotHead:])
		}
	}
}

// combineSlots reduces all ranks' values from byte lo on into b.
func (d *domain) combineSlots(c *collective.DirectCall, b []byte, lo int) {
	a := &d.arithmetic
	a.dsts, a.srcs = append(a.dsts[:0], b), a.srcs[:0]
	for r := range d.ranks {
		a.srcs = append(a.srcs, d.slot(r)[slotHead+lo:slotHead+lo+len(b)])
	}
	a.combine(c)
}

// shared returns n bytes of a peer's buffer.
func (d *domain) shared(place int64, n int) ([]byte, error) {
	b := d.transport.at(place, n)
	if b == nil {
		return nil, fmt.Errorf("a peer's buffer of %d bytes lies in memory that this rank has not mapped", n)
	}
	return b, nil
}
