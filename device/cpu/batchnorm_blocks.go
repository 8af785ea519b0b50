package cpu

import "github.com/gradfusion/gradfusion/device"

// normBlocks makes both passes of backward over a block of channels before it
// turns to the next one, so that the second pass finds the block in the
// second-level cache. Part c is block c.
type normBlocks struct {
	*normTask
	d                      device.BatchNorm
	dscale, dshift, invstd []float32
	frozen                 bool
}

// normCached is the bytes of a block that the cache holds from pass to pass.
const normCached = 2 << 20

// fit reports whether blocks fit the cache and feed all threads.
func (t *normBlocks) fit(threads int) bool {
	tensors := 3 // dy, x and dx, which is dy's memory or comes into the cache as well
	if t.relu {
		tensors++
	}
	return t.n*t.pixels*block*4*tensors <= normCached && (threads == 1 || t.blocks >= 2*threads)
}

func (t *normBlocks) do(s *scratch, c int) {
	t.ofBlock(c, func(at, lo, hi int) { t.piece(s, normSums, c, at, lo, hi) })
	t.parameters(c)
	t.ofBlock(c, func(at, lo, hi int) { t.piece(s, normOutputs, c, at, lo, hi) })
}

// parameters adds up the sums of all pieces of block c in float64.
func (t *normBlocks) parameters(c int) {
	count := float64(t.d.N * t.d.H * t.d.W)
	var gradient, product [block]float64
	sums := t.sums[c*t.perBlock():][:t.perBlock()]
	for i := range sums {
		s := &sums[i]
		for lane := range gradient {
			gradient[lane] += float64(s.gradient[lane])
			product[lane] += float64(s.product[lane])
		}
	}
	p := &t.numbers[c]
	for i := c * block; i < min(t.d.C, (c+1)*block); i++ {
		lane, inverse := i%block, float64(t.invstd[i])
		t.dscale[i], t.dshift[i] = float32(product[lane]*inverse), float32(gradient[lane])
		if !t.frozen {
			p.offset[lane] = float32(gradient[lane] / count)
			p.slope[lane] = float32(product[lane] * inverse * inverse / count)
		}
	}
}
