//go:build linux && (amd64 || arm64)

package shm

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
)

// The methods of this file are for buffers that peers cannot reach: values go
// through windows of shared memory, a window at a time, so that they stay in the
// cache. Each rank has four windows.

// reduceStaged is all-reduce and reduce: of each window every rank reduces its
// slice. Windows 0 and 1 of a rank are for what it gives, 2 and 3 for results;
// a rank gives of the next window before it waits for the results of this one.
//
// A rank publishes in this order: given 0, given 1, reduced 0, given 2,
// reduced 1, ... A window is used again when all have reduced it (given), and
// taken it, which they have when they give the next but one (results).
//
// With begun all ranks have given window 0 with their head.
func (d *domain) reduceStaged(c *collective.DirectCall, in, out []byte, begun bool) error {
	stage := d.transport.layout.stage
	count := (len(in) + stage - 1) / stage
	takes := c.Kind == plan.AllReduce || d.rank == c.Root
	if !begun {
		d.give(in, 0)
		d.publish()
	}
	before := d.published - 1
	given := func(w int) uint32 { return before + uint32(max(1, 2*w)) }
	reduced := func(w int) uint32 { return before + uint32(min(2*w+3, 2*count)) }
	for w := range count {
		if w+1 < count {
			d.give(in, w+1)
			d.publish()
		}
		if err := d.awaitAll(c, given(w)); err != nil {
			return err
		}
		d.reduceWindow(c, in, out, w, takes)
		if err := d.awaitAll(c, reduced(w)); err != nil {
			return err
		}
		if takes {
			d.takeResults(out, w)
		}
	}
	return nil
}

// slice is where a rank's slice of a window lies in a vector of n bytes.
func (d *domain) slice(n, w, rank int) (base, lo, hi int) {
	stage := d.transport.layout.stage
	base = w * stage
	lo, hi = ownSlice(min(stage, n-base), rank, len(d.ranks))
	return base, lo, hi
}

// give copies what the others reduce.
func (d *domain) give(in []byte, w int) {
	window := d.window(d.rank, w&1)
	for r := range d.ranks {
		if base, lo, hi := d.slice(len(in), w, r); r != d.rank && lo < hi {
			n := copyAhead(window[lo:hi], in[base+lo:base+hi])
			copy(window[lo+n:hi], in[base+lo+n:base+hi])
		}
	}
}

func (d *domain) reduceWindow(c *collective.DirectCall, in, out []byte, w int, takes bool) {
	a := &d.arithmetic
	base, lo, hi := d.slice(len(in), w, d.rank)
	a.srcs, a.dsts = a.srcs[:0], append(a.dsts[:0], d.window(d.rank, 2+w&1)[lo:hi])
	for r := range d.ranks {
		if r == d.rank {
			a.srcs = append(a.srcs, in[base+lo:base+hi])
		} else {
			a.srcs = append(a.srcs, d.window(r, w&1)[lo:hi])
		}
	}
	if takes {
		a.dsts = append(a.dsts, out[base+lo:base+hi])
	}
	a.combine(c)
	d.publish()
}

func (d *domain) takeResults(out []byte, w int) {
	for i := 1; i < len(d.ranks); i++ {
		r := (d.rank + i) % len(d.ranks)
		if base, lo, hi := d.slice(len(out), w, r); lo < hi {
			transfer(out[base+lo:base+hi], d.window(r, 2+w&1)[lo:hi], 0)
		}
	}
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
