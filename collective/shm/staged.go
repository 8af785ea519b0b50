//go:build linux && (amd64 || arm64)

package shm

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
)

// The methods of this file are for buffers that peers cannot reach: values go
// through windows of shared memory, a window at a time, so that they stay in the
// cache. Each rank has four windows.

// turn is how many bytes of the vector are reduced at a time where every rank
// has a processor: small enough that all that is under way stays in the second
// cache.
const turn = 128 << 10

// reduceStaged is all-reduce and reduce: of each window every rank reduces its
// slice. A rank's window is for what it gives to the others' slices, and each
// owner of a slice puts the result where it found what was given: a line of
// memory that passes between two processors' caches takes longer than
// everything else, and so it passes once in each direction.
//
// A rank gives two windows ahead and takes results one window late, so that it
// seldom waits. It publishes in this order: given 0, given 1, reduced 0,
// given 2, reduced 1, ... Its windows are its own again when all have reduced
// them, so nothing lingers at the end.
//
// With begun all ranks have given window 0 with their head.
func (d *domain) reduceStaged(c *collective.DirectCall, in, out []byte, begun bool) error {
	count := (len(in) + d.turn() - 1) / d.turn()
	if !begun {
		d.give(in, 0)
		d.publish()
	}
	before := d.published - 1
	given := func(w int) uint32 { return before + uint32(max(1, 2*w)) }
	reduced := func(w int) uint32 { return before + uint32(min(2*w+3, 2*count)) }
	if count > 1 {
		d.give(in, 1)
		d.publish()
	}
	for w := range count + 1 {
		if w < count {
			if err := d.awaitAll(c, given(w)); err != nil {
				return err
			}
			d.reduceWindow(c, in, out, w)
			d.publish()
		}
		if w > 0 {
			if err := d.awaitAll(c, reduced(w-1)); err != nil {
				return err
			}
		}
		d.passOn(c, in, out, w-1, w+2)
		if w+2 < count {
			d.publish()
		}
	}
	return nil
}

// turn is how many bytes of the vector a window is for.
func (d *domain) turn() int {
	if d.transport.layout.ranks > 2 {
		return d.transport.layout.stage
	}
	return min(turn, d.transport.layout.stage)
}

// takes reports whether a rank gets the result.
func takes(c *collective.DirectCall, rank int) bool {
	return c.Kind == plan.AllReduce || rank == c.Root
}

// slice is where a rank's slice of a window lies in a vector of n bytes.
func (d *domain) slice(n, w, rank int) (base, lo, hi int) {
	base = w * d.turn()
	lo, hi = ownSlice(min(d.turn(), n-base), rank, len(d.ranks))
	return base, lo, hi
}

// give copies what the others reduce.
func (d *domain) give(in []byte, w int) {
	window := d.window(d.rank, w&3)
	for r := range d.ranks {
		if base, lo, hi := d.slice(len(in), w, r); r != d.rank && lo < hi {
			fetch(window[lo:hi], in[base+lo:base+hi])
		}
	}
}

func (d *domain) reduceWindow(c *collective.DirectCall, in, out []byte, w int) {
	a := &d.arithmetic
	base, lo, hi := d.slice(len(in), w, d.rank)
	a.srcs, a.dsts = a.srcs[:0], a.dsts[:0]
	for r := range d.ranks {
		src, dst := d.window(r, w&3)[lo:hi], d.window(r, w&3)[lo:hi]
		if r == d.rank {
			src = in[base+lo : base+hi]
			if takes(c, r) {
				dst = out[base+lo : base+hi]
			}
		}
		a.srcs = append(a.srcs, src)
		if takes(c, r) {
			a.dsts = append(a.dsts, dst)
		}
	}
	a.combine(c)
}

// passOn takes the results of window taken and gives window given, where the call
// has such windows and the rank takes results.
func (d *domain) passOn(c *collective.DirectCall, in, out []byte, taken, given int) {
	for r := range d.ranks {
		if r == d.rank {
			continue
		}
		var dst, src, dst2, src2 []byte
		if taken >= 0 && takes(c, d.rank) {
			base, lo, hi := d.slice(len(out), taken, r)
			dst, src = out[base+lo:base+hi], d.window(d.rank, taken&3)[lo:hi]
		}
		if given*d.turn() < len(in) {
			base, lo, hi := d.slice(len(in), given, r)
			dst2, src2 = d.window(d.rank, given&3)[lo:hi], in[base+lo:base+hi]
		}
		n := min(len(src), len(src2))
		n = exchange(dst, src[:n], dst2, src2[:n])
		fetch(dst[n:], src[n:])
		fetch(dst2[n:], src2[n:])
	}
}

// fetch copies src, which another processor has or memory, to dst.
func fetch(dst, src []byte) {
	n := copyAhead(dst, src)
	copy(dst[n:], src[n:])
}

// moveStaged is broadcast, all-gather and reduce-scatter: in each window every
// rank gives its values and takes the others'. It gives one window ahead, so
// what was given four windows ago has been taken by all.
func (d *domain) moveStaged(c *collective.DirectCall, in, out []byte) error {
	count := d.windowCount(c, out)
	before := d.published
	d.giveMoved(c, in, 0)
	for w := range count {
		if w+1 < count {
			d.giveMoved(c, in, w+1)
		}
		if err := d.awaitAll(c, before+uint32(w+1)); err != nil {
			return err
		}
		d.takeMoved(c, in, out, w)
	}
	d.lingering = true
	return nil
}

// share is how many bytes of one rank a window holds.
func (d *domain) share(c *collective.DirectCall) int {
	if c.Kind == plan.ReduceScatter {
		return d.transport.layout.stage / len(d.ranks) / kernelBlock * kernelBlock
	}
	return d.transport.layout.stage
}

// windowCount depends on what all ranks know.
func (d *domain) windowCount(c *collective.DirectCall, out []byte) int {
	longest := len(out)
	if c.Kind != plan.Broadcast {
		longest = 0
		for r := range d.ranks {
			longest = max(longest, (c.Parts[r+1]-c.Parts[r])*c.Type.Size())
		}
	}
	return (longest + d.share(c) - 1) / d.share(c)
}

// piece is window w of [0, n).
func piece(n, w, size int) (lo, hi int) { return min(n, w*size), min(n, (w+1)*size) }

func (d *domain) giveMoved(c *collective.DirectCall, in []byte, w int) {
	window, share, size := d.window(d.rank, w&3), d.share(c), c.Type.Size()
	switch {
	case c.Kind == plan.ReduceScatter:
		for r := range d.ranks {
			part := in[c.Parts[r]*size : c.Parts[r+1]*size]
			if lo, hi := piece(len(part), w, share); r != d.rank {
				transfer(window[r*share:r*share+hi-lo], part[lo:hi], 0)
			}
		}
	case c.Kind == plan.AllGather || d.rank == c.Root:
		lo, hi := piece(len(in), w, share)
		transfer(window[:hi-lo], in[lo:hi], 0)
	}
	d.publish()
}

func (d *domain) takeMoved(c *collective.DirectCall, in, out []byte, w int) {
	share, size := d.share(c), c.Type.Size()
	switch c.Kind {
	case plan.Broadcast:
		lo, hi := piece(len(out), w, share)
		if d.rank != c.Root {
			transfer(out[lo:hi], d.window(c.Root, w&3)[:hi-lo], 0)
		} else if lo < hi && &in[lo] != &out[lo] {
			transfer(out[lo:hi], in[lo:hi], len(out))
		}
	case plan.AllGather:
		for i := range d.ranks {
			r := (d.rank + i) % len(d.ranks)
			part := out[c.Parts[r]*size : c.Parts[r+1]*size]
			lo, hi := piece(len(part), w, share)
			if r != d.rank {
				transfer(part[lo:hi], d.window(r, w&3)[:hi-lo], 0)
			} else if lo < hi && &in[lo] != &part[lo] {
				transfer(part[lo:hi], in[lo:hi], len(out))
			}
		}
	case plan.ReduceScatter:
		d.reducePiece(c, in, out, w)
	}
}

func (d *domain) reducePiece(c *collective.DirectCall, in, out []byte, w int) {
	share, size := d.share(c), c.Type.Size()
	own := in[c.Parts[d.rank]*size : c.Parts[d.rank+1]*size]
	lo, hi := piece(len(own), w, share)
	if lo == hi {
		return
	}
	a := &d.arithmetic
	a.srcs, a.dsts = a.srcs[:0], append(a.dsts[:0], out[lo:hi])
	for r := range d.ranks {
		if r == d.rank {
			a.srcs = append(a.srcs, own[lo:hi])
		} else {
			at := d.rank * share
			a.srcs = append(a.srcs, d.window(r, w&3)[at:at+hi-lo])
		}
	}
	a.combine(c)
}
