package parallel

import "github.com/gradfusion/gradfusion/device"

// The canonical tree over the leaves 0..M-1 of a step pairs neighbours whose
// indices are aligned, and folds what is left from right to left. For M = 7:
//
//	        ( . )
//	       /     \
//	     .        ( . )
//	   /   \      /   \
//	  .     .    .     \
//	 / \   / \  / \     \
//	0   1 2   3 4   5    6
//
// It depends on M only. A rank that computes the run [lo, hi) of leaves adds
// what is a subtree of it (maximal aligned nodes, at most 2 log2 M) and leaves
// the rest to whoever has the other nodes, so the sum has the same bits however
// the leaves are dealt.

// node is the sum of leaves [lo, lo+size), size a power of two that divides lo.
type node struct {
	lo, size int
	buf      device.Buf
}

// counter is a binary counter of nodes in ascending order of lo.
type counter struct{ nodes []node }

// push appends a node and adds up the pairs that it completes; freed gets the
// buffers that are no longer needed, and may be nil.
func (c *counter) push(n node, freed func(device.Buf)) {
	c.nodes = append(c.nodes, n)
	for len(c.nodes) > 1 {
		a, b := &c.nodes[len(c.nodes)-2], c.nodes[len(c.nodes)-1]
		if a.size != b.size || a.lo%(2*a.size) != 0 {
			return
		}
		addInto(a.buf, b.buf)
		a.size *= 2
		c.pop(freed)
	}
}

// finish folds the nodes into one, from right to left, and empties the counter.
// The zero Buf means that there were none.
func (c *counter) finish(freed func(device.Buf)) device.Buf {
	for len(c.nodes) > 1 {
		addInto(c.nodes[len(c.nodes)-2].buf, c.nodes[len(c.nodes)-1].buf)
		c.pop(freed)
	}
	if len(c.nodes) == 0 {
		return device.Buf{}
	}
	b := c.nodes[0].buf
	c.nodes = c.nodes[:0]
	return b
}

func (c *counter) pop(freed func(device.Buf)) {
	last := len(c.nodes) - 1
	if freed != nil {
		freed(c.nodes[last].buf)
	}
	c.nodes = c.nodes[:last]
}

// nodesOf calls f for the maximal aligned nodes of the run [lo, hi), which are
// those that a counter holds after the run's leaves were pushed.
func nodesOf(lo, hi int, f func(lo, size int)) {
	for lo < hi {
		size := 1
		for lo%(2*size) == 0 && lo+2*size <= hi {
			size *= 2
		}
		f(lo, size)
		lo += size
	}
}

// countNodes returns how many nodes the run [lo, hi) has.
func countNodes(lo, hi int) (n int) {
	nodesOf(lo, hi, func(int, int) { n++ })
	return n
}

// addInto adds src to dst, both F32. It is plain Go and not a device's kernel
// because it runs beside the backward pass, whose thread the device uses.
func addInto(dst, src device.Buf) {
	d, s := dst.F32(), src.F32()
	s = s[:len(d)]
	for i := range d {
		d[i] += s[i]
	}
}
