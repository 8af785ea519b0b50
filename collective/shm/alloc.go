//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// region is memory that Alloc has mapped: one part per rank of a group, of equal
// strides.
type region struct {
	mapped []byte
	at     int64 // in the file
	stride int
	ranks  []int // the transport's; nobody changes it
}

// Alloc implements collective.Direct. Rank 0 of the group takes the place from
// the heap; everybody makes the pages of its own part, then maps the others'.
func (d *domain) Alloc(c *collective.DirectCall, typ device.Type, n int) ([]device.Buf, error) {
	if err := d.transport.enter(context.Background()); err != nil {
		return nil, err
	}
	defer d.transport.exit()
	d.busy.Lock()
	defer d.busy.Unlock()
	if err := d.ready(); err != nil {
		return nil, err
	}
	size := n * typ.Size()
	stride := roundUp(max(size, 1), grain)
	if stride > hugePage {
		stride = roundUp(stride, hugePage)
	}
	at := int64(0)
	if d.rank == 0 {
		at = d.transport.reserve(stride * len(d.ranks))
	}
	if err := d.greet(c, at, 0, nil); err != nil {
		return nil, err
	}
	if at = d.in[0]; at == 0 {
		return nil, fmt.Errorf("the shared memory's %d bytes are used up", int64(fileSize))
	}
	mapped, err := mapMemory(d.transport.memory, at, stride*len(d.ranks))
	own := d.rank * stride
	if err == nil {
		if err = populate(mapped[own : own+stride]); err != nil {
			_ = unix.Munmap(mapped)
		}
	}
	if failed := d.agree(c, err); failed != nil {
		if err == nil {
			_ = unix.Munmap(mapped)
		}
		return nil, failed
	}
	if err := populate(mapped); err != nil { // the pages are there: only the tables can fail
		_ = unix.Munmap(mapped)
		return nil, err
	}
	d.transport.keep(region{mapped: mapped, at: at, stride: stride, ranks: d.ranks})
	ranks := make([]device.Buf, len(d.ranks))
	for r := range ranks {
		ranks[r] = device.FromBytes(typ, mapped[r*stride:r*stride+size:r*stride+size])
	}
	return ranks, nil
}

// agree publishes this rank's error and returns the first of all ranks'.
func (d *domain) agree(c *collective.DirectCall, failed error) error {
	status := d.slot(d.rank)[statusAt:slotHead]
	n := 0
	if failed != nil {
		n = copy(status[4:], failed.Error())
	}
	binary.LittleEndian.PutUint32(status, uint32(n))
	d.publish()
	if err := d.awaitAll(c, d.published); err != nil {
		return err
	}
	for r := range d.ranks {
		status := d.slot(r)[statusAt:slotHead]
		if n := min(int(binary.LittleEndian.Uint32(status)), len(status)-4); n > 0 && r != d.rank {
			return fmt.Errorf("rank %d: %s", r, status[4:4+n])
		}
	}
	return failed
}

// reserve takes bytes of the heap for good; 0 when there are not so many.
func (t *Transport) reserve(n int) int64 {
	end := atomic64At(t.control, heapAt).Add(uint64(roundUp(n, hugePage)))
	if t.layout.heap+int64(end) > fileSize {
		return 0
	}
	return t.layout.heap + int64(end) - int64(roundUp(n, hugePage))
}

// keep adds a region; lookups go on meanwhile.
func (t *Transport) keep(r region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []region
	if old := t.regions.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, r)
	t.regions.Store(&all)
}

// placeOf returns where b lies in the file, or 0 when it is other memory.
func (t *Transport) placeOf(b device.Buf) int64 {
	r, offset := t.regionOf(b)
	if r == nil {
		return 0
	}
	return r.at + int64(offset)
}

func (t *Transport) regionOf(b device.Buf) (*region, int) {
	all := t.regions.Load()
	if all == nil || b.Len == 0 {
		return nil, 0
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
	for i := range *all {
		r := &(*all)[i]
		first := uintptr(unsafe.Pointer(unsafe.SliceData(r.mapped)))
		if at >= first && at+uintptr(b.Size()) <= first+uintptr(len(r.mapped)) {
			return r, int(at - first)
		}
	}
	return nil, 0
}

// at returns n bytes of the file at a place that placeOf gave to some rank of a
// group, or nil when this rank has not mapped them.
func (t *Transport) at(place int64, n int) []byte {
	all := t.regions.Load()
	if all == nil {
		return nil
	}
	for i := range *all {
		r := &(*all)[i]
		if place >= r.at && place+int64(n) <= r.at+int64(len(r.mapped)) {
			lo := int(place - r.at)
			return r.mapped[lo : lo+n : lo+n]
		}
	}
	return nil
}

// peersOf is Register: the same place in all ranks' parts.
func (t *Transport) peersOf(b device.Buf) []device.Buf {
	r, offset := t.regionOf(b)
	if r == nil || len(r.ranks) != t.size {
		return nil
	}
	within := offset % r.stride
	peers := make([]device.Buf, t.size)
	for i, rank := range r.ranks {
		lo := i*r.stride + within
		peers[rank] = device.FromBytes(b.Type, r.mapped[lo:lo+b.Size():lo+b.Size()])
	}
	return peers
}
