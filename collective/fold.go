package collective

import (
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// folds reports whether a call takes the one road of 16-bit sums: all-to-all of
// slices, a fold in float32 by each slice's owner in rank order, rounded once,
// and an all-gather of the results. Other orders would round at each addition.
func (g *Group) folds(c *Call) bool {
	t := c.typ()
	return (t == device.F16 || t == device.BF16) && c.Kind.Reduces() && c.Op != Max && c.Op != Min
}

// foldPiece is how many bytes of a slice are folded at once: the next piece
// arrives and the last one leaves meanwhile.
const foldPiece = 1 << 20

// folding is a fold being compiled, piece by piece.
type folding struct {
	*assembly
	call   *Call
	ranks  int
	pieces int
	parts  [][]int // the bounds of each rank's pieces in the whole vector
	result memory
	offset int // of the own part's place in the result
	most   int // elements of the own part's largest piece
}

func (g *Group) compileFold(c *Call) (*program, error) {
	n := len(g.ranks)
	bounds := c.InBounds
	if bounds == nil {
		bounds = plan.Cut(c.In.Len, n)
	}
	if err := checkBounds(bounds, c.In.Len); err != nil {
		return nil, err
	}
	own := bounds[g.rank+1] - bounds[g.rank]
	switch {
	case c.Kind == plan.ReduceScatter && c.Out.Len != 0 && c.Out.Len != own:
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", own, c.Out.Len)
	case c.Kind != plan.ReduceScatter && c.Out.Len != 0 && c.Out.Len != c.In.Len:
		return nil, fmt.Errorf("input of %d elements, output of %d", c.In.Len, c.Out.Len)
	}
	f := folding{assembly: g.assemble(c), call: c, ranks: n, result: outMemory}
	f.header.algorithm = "fold"
	f.pieces = max(1, c.In.Size()/(n*foldPiece))
	for r := range n {
		f.parts = append(f.parts, plan.Cut(bounds[r+1]-bounds[r], f.pieces))
		for i := range f.parts[r] {
			f.parts[r][i] += bounds[r]
		}
	}
	f.most = f.parts[g.rank][1] - f.parts[g.rank][0]
	if c.Out.Len == 0 {
		f.result = inMemory
	}
	if c.Kind == plan.ReduceScatter && c.Out.Len != 0 {
		f.offset = bounds[g.rank]
	}
	f.exchange(0)
	for p := range f.pieces {
		if p+1 < f.pieces {
			f.exchange(p + 1)
		}
		f.fold(p)
		f.gather(p)
	}
	return f.program, nil
}

// piece is where piece p of rank r's part lies in the whole vector.
func (f *folding) piece(mem memory, r, p int) region {
	return region{mem, f.parts[r][p], f.parts[r][p+1]}
}

// slot is where rank r's values for piece p of the own part are received; slot n
// is for a result that nobody keeps here. Two pieces are at work at a time.
func (f *folding) slot(r, p int) region {
	first := (p%2*(f.ranks+1) + r) * f.most
	return region{scratchMemory, first, first + f.piece(inMemory, f.rank, p).size()}
}

// exchange sends every owner its piece, each rank starting with its right
// neighbour.
func (f *folding) exchange(p int) {
	for step := 1; step < f.ranks; step++ {
		to := (f.rank + step) % f.ranks
		f.send(to, f.piece(inMemory, to, p), false)
	}
	for step := 1; step < f.ranks; step++ {
		from := (f.rank - step + f.ranks) % f.ranks
		f.act(action{span: span{at: f.slot(from, p)}, kind: receiveAction, peer: from})
	}
}

// target is where the result of piece p goes.
func (f *folding) target(p int) region {
	if f.call.Kind == plan.Reduce && f.rank != f.call.Root {
		return f.slot(f.ranks, p)
	}
	at := f.piece(f.result, f.rank, p)
	return region{at.mem, at.lo - f.offset, at.hi - f.offset}
}

func (f *folding) fold(p int) {
	own := f.piece(inMemory, f.rank, p)
	if target := f.target(p); target.overlaps(own) {
		f.copy(f.slot(f.rank, p), own)
		own = f.slot(f.rank, p)
	}
	var parts []region
	for r := range f.ranks {
		part := f.slot(r, p)
		if r == f.rank {
			part = own
		}
		parts = append(parts, part)
	}
	f.act(action{span: span{at: f.target(p)}, kind: foldAction, parts: parts})
}

// gather hands the results to those who need them.
func (f *folding) gather(p int) {
	root, reduces := f.call.Root, f.call.Kind == plan.Reduce
	if f.call.Kind == plan.ReduceScatter {
		return
	}
	for step := 1; step < f.ranks; step++ {
		if to := (f.rank + step) % f.ranks; !reduces || to == root {
			f.send(to, f.target(p), false)
		}
	}
	for step := 1; step < f.ranks && (!reduces || f.rank == root); step++ {
		from := (f.rank - step + f.ranks) % f.ranks
		f.act(action{span: span{at: f.piece(f.result, from, p)}, kind: receiveAction, peer: from})
	}
}
