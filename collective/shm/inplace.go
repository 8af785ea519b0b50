//go:build linux && (amd64 || arm64)

package shm

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
)

// The methods of this file work on buffers that all ranks have mapped. They come
// after all ranks have entered and end when all have left: a peer reads and
// writes this rank's buffer until then.

const (
	// sliceUnit is what slices are cut in, so that no two ranks write to one
	// pair of lines.
	sliceUnit = 4 << 10
	// mostChunk is what a rank takes at a time, at most, when there are more ranks
	// than processors: one that was descheduled holds up one chunk only.
	mostChunk = 256 << 10
	// leastChunk is worth the counter's way from one processor to the other.
	leastChunk = 4 * sliceUnit
)

// leave ends a call on shared buffers.
func (d *domain) leave(c *collective.DirectCall) error {
	d.publish()
	return d.awaitAll(c, d.published)
}

// ownSlice cuts n bytes in equal parts of whole units.
func ownSlice(n, part, parts int) (lo, hi int) {
	units := (n + sliceUnit - 1) / sliceUnit
	cut := func(i int) int { return min(n, (i*(units/parts)+min(i, units%parts))*sliceUnit) }
	return cut(part), cut(part + 1)
}

// reduceInPlace is the direct all-reduce, and reduce: each rank reduces its
// slice of all buffers, in rank order, into all.
//
// Each byte of each buffer is read once and written once.
func (d *domain) reduceInPlace(c *collective.DirectCall, in []byte) error {
	srcs, dsts := d.srcs[:0], d.dsts[:0]
	for r := range d.ranks {
		src, err := d.shared(d.in[r], len(in))
		if err != nil {
			return err
		}
		srcs = append(srcs, src)
		if c.Kind == plan.Reduce && r != c.Root {
			continue
		}
		dst, err := d.shared(d.out[r], len(in))
		if err != nil {
			return err
		}
		dsts = append(dsts, dst)
	}
	d.srcs, d.dsts = srcs, dsts
	if d.transport.spin.crowded {
		d.takeChunks(c, len(in))
	} else {
		lo, hi := ownSlice(len(in), d.rank, len(d.ranks))
		d.reduceShared(c, lo, hi)
	}
	return d.leave(c)
}

// reduceShared reduces bytes [lo, hi) of d.srcs into d.dsts.
func (d *domain) reduceShared(c *collective.DirectCall, lo, hi int) {
	a := &d.arithmetic
	a.srcs, a.dsts = a.srcs[:0], a.dsts[:0]
	for _, b := range d.srcs {
		a.srcs = append(a.srcs, b[lo:hi])
	}
	for _, b := range d.dsts {
		a.dsts = append(a.dsts, b[lo:hi])
	}
	a.combine(c)
}

// chunkOf cuts n bytes so that each rank has one, within the limits.
func chunkOf(n, ranks int) int {
	units := (n + ranks*sliceUnit - 1) / (ranks * sliceUnit)
	return min(max(units*sliceUnit, leastChunk), mostChunk)
}

// takeChunks reduces chunks until all ranks together have done all. Every rank
// takes one ticket too many, so that all know how many the call took.
func (d *domain) takeChunks(c *collective.DirectCall, n int) {
	chunk := chunkOf(n, len(d.ranks))
	count := (n + chunk - 1) / chunk
	first := d.tickets
	d.tickets += uint32(count + len(d.ranks))
	for {
		i := int(d.counter.Add(1) - 1 - first)
		if i >= count {
			return
		}
		d.reduceShared(c, i*chunk, min(n, (i+1)*chunk))
	}
}

// scatterInPlace is reduce-scatter: each rank reduces its part of all buffers.
func (d *domain) scatterInPlace(c *collective.DirectCall, in, out []byte) error {
	a := &d.arithmetic
	lo, hi := c.Parts[d.rank]*c.Type.Size(), c.Parts[d.rank+1]*c.Type.Size()
	a.srcs, a.dsts = a.srcs[:0], a.dsts[:0]
	for r := range d.ranks {
		src, err := d.shared(d.in[r], len(in))
		if err != nil {
			return err
		}
		a.srcs = append(a.srcs, src[lo:hi])
	}
	if hi > lo {
		a.dsts = append(a.dsts, out)
		a.combine(c)
	}
	return d.leave(c)
}

// gatherInPlace is all-gather: each rank stores its part in all buffers.
func (d *domain) gatherInPlace(c *collective.DirectCall, in, out []byte) error {
	lo, hi := c.Parts[d.rank]*c.Type.Size(), c.Parts[d.rank+1]*c.Type.Size()
	for i := range d.ranks {
		r := (d.rank + i) % len(d.ranks)
		dst, err := d.shared(d.out[r], len(out))
		if err != nil {
			return err
		}
		if lo < hi && &dst[lo] != &in[0] {
			transfer(dst[lo:hi], in, len(out))
		}
	}
	return d.leave(c)
}

// broadcastInPlace shares the copying out among all ranks: each carries its
// slice of the root's buffer to everybody.
func (d *domain) broadcastInPlace(c *collective.DirectCall, out []byte) error {
	src, err := d.shared(d.in[c.Root], len(out))
	if err != nil {
		return err
	}
	lo, hi := ownSlice(len(out), d.rank, len(d.ranks))
	for i := range d.ranks {
		r := (d.rank + i) % len(d.ranks)
		dst, err := d.shared(d.out[r], len(out))
		if err != nil {
			return err
		}
		if lo < hi && &dst[lo] != &src[lo] {
			transfer(dst[lo:hi], src[lo:hi], len(out))
		}
	}
	return d.leave(c)
}
