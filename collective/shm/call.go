//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"encoding/binary"
	"fmt"

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
	if err := d.greet(c, d.transport.placeOf(in), d.transport.placeOf(out), nil); err != nil {
		return false, err
	}
	work, err := d.plan(c, in, out)
	if err != nil || work == nil {
		return false, err
	}
	return true, work(c, in.Bytes(), out.Bytes())
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

func (d *domain) slot(rank int) []byte {
	at := d.transport.layout.slotAt(int(d.calls&1), rank)
	return d.words[at : at+slotHead+slotData]
}

// greet begins a call: it shows the peers its head, where this rank's buffers
// lie, and the values of a small call, waits for theirs, and checks that they
// run the same. A slot is used again two calls later, when all have left this
// one: they have entered the next.
func (d *domain) greet(c *collective.DirectCall, in, out int64, values []byte) error {
	d.calls++
	own := d.slot(d.rank)
	copy(own, c.Head[:])
	binary.LittleEndian.PutUint64(own[inAt:], uint64(in))
	binary.LittleEndian.PutUint64(own[outAt:], uint64(out))
	copy(own[slotHead:], values)
	d.publish()
	count := d.published
	for i := 1; i < len(d.ranks); i++ {
		peer := (d.rank + i) % len(d.ranks)
		if err := d.awaitRank(c, peer, count); err != nil {
			return err
		}
		if err := c.Check(peer, d.slot(peer)[:collective.HeadSize]); err != nil {
			return err
		}
	}
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

// method carries out a large call between entering and returning.
type method func(c *collective.DirectCall, in, out []byte) error

// plan chooses the method by what is shared, which all ranks see alike.
func (d *domain) plan(c *collective.DirectCall, in, out device.Buf) (method, error) {
	switch c.Kind {
	case plan.AllReduce:
		if all(d.in) && all(d.out) {
			return d.reduceInPlace, nil
		}
		return d.reduceStaged, d.openWindows()
	case plan.Reduce:
		if all(d.in) && d.out[c.Root] != 0 {
			return d.reduceInPlace, nil
		}
		return d.reduceStaged, d.openWindows()
	case plan.ReduceScatter:
		if all(d.in) {
			return d.scatterInPlace, nil
		}
		return d.moveStaged, d.openWindows()
	case plan.AllGather:
		if all(d.out) {
			return d.gatherInPlace, nil
		}
		return d.moveStaged, d.openWindows()
	case plan.Broadcast:
		if all(d.out) && d.in[c.Root] != 0 {
			return d.broadcastInPlace, nil
		}
		return d.moveStaged, d.openWindows()
	}
	return nil, nil
}

func all(places []int64) bool {
	for _, p := range places {
		if p == 0 {
			return false
		}
	}
	return true
}

// shared returns n bytes of a peer's buffer.
func (d *domain) shared(place int64, n int) ([]byte, error) {
	b := d.transport.at(place, n)
	if b == nil {
		return nil, fmt.Errorf("a peer's buffer of %d bytes lies in memory that this rank has not mapped", n)
	}
	return b, nil
}
