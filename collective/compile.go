package collective

import (
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// compile turns a call into this rank's program.
func (g *Group) compile(c *Call) (*program, error) {
	if err := g.validate(c); err != nil {
		return nil, err
	}
	if g.folds(c) {
		return g.compileFold(c)
	}
	prog := &program{header: g.headerOf(c)}
	algorithm, err := g.algorithm(c, prog.header.count*c.typ().Size())
	if err != nil {
		return nil, err
	}
	prog.header.algorithm = algorithm.Name
	p := algorithm.Plan(c.Kind, g.world(), c.Root)
	at, err := g.place(prog, c, p.Chunks)
	if err != nil {
		return nil, err
	}
	g.add(prog, p, at)
	return prog, nil
}

func (g *Group) validate(c *Call) error {
	n := len(g.ranks)
	switch {
	case c.Kind > plan.Barrier:
		return fmt.Errorf("unknown operation %v", c.Kind)
	case c.Op > Mean:
		return fmt.Errorf("unknown reduction %v", c.Op)
	case c.Root < 0 || c.Root >= n:
		return fmt.Errorf("root %d of %d ranks", c.Root, n)
	case c.In.Len > 0 && c.Out.Len > 0 && c.In.Type != c.Out.Type:
		return fmt.Errorf("input of %v, output of %v", c.In.Type, c.Out.Type)
	case c.Codec != nil:
		return fmt.Errorf("a codec is not supported yet")
	}
	for _, b := range []device.Buf{c.In, c.Out} {
		if b.Len > 0 && b.Bytes() == nil {
			return fmt.Errorf("a buffer that the host cannot read")
		}
	}
	for _, bounds := range [][]int{c.InBounds, c.OutBounds} {
		if bounds != nil && (len(bounds) != n+1 || bounds[0] != 0 || !slices.IsSorted(bounds)) {
			return fmt.Errorf("bounds %v are not %d ascending offsets from 0", bounds, n+1)
		}
	}
	return nil
}

// place decides where the chunks of c lie, and what is copied before and after.
func (g *Group) place(prog *program, c *Call, chunks int) (layout, error) {
	n := len(g.ranks)
	switch c.Kind {
	case plan.Barrier:
		return within(inMemory, make([]int, chunks+1)), nil
	case plan.AllToAll:
		return g.placeAllToAll(prog, c, chunks)
	case plan.AllReduce, plan.Reduce, plan.Broadcast:
		work, total, err := g.placeWhole(prog, c)
		if err != nil {
			return nil, err
		}
		if c.Op == Mean && (c.Kind == plan.AllReduce || c.Kind == plan.Reduce && g.rank == c.Root) {
			prog.divide = region{work, 0, total}
		}
		if c.InBounds != nil && chunks%n == 0 {
			return within(work, subdivide(c.InBounds, chunks/n)), nil
		}
		return within(work, plan.Cut(total, chunks)), nil
	}
	return g.placeParts(prog, c, chunks/n)
}

// placeWhole is for operations whose ranks all hold the whole vector.
func (g *Group) placeWhole(prog *program, c *Call) (work memory, total int, err error) {
	if c.InBounds != nil && c.InBounds[len(g.ranks)] != max(c.In.Len, c.Out.Len) {
		return 0, 0, fmt.Errorf("bounds up to %d of a vector of %d", c.InBounds[len(g.ranks)], max(c.In.Len, c.Out.Len))
	}
	reads := c.Kind != plan.Broadcast || g.rank == c.Root
	switch {
	case c.Out.Len == 0:
		return inMemory, c.In.Len, nil
	case c.In.Len != c.Out.Len && (reads || c.In.Len != 0):
		return 0, 0, fmt.Errorf("input of %d elements, output of %d", c.In.Len, c.Out.Len)
	}
	if reads {
		prog.before = append(prog.before, [2]region{{outMemory, 0, c.Out.Len}, {inMemory, 0, c.In.Len}})
	}
	return outMemory, c.Out.Len, nil
}

// placeParts is for operations in which each rank owns a part; every part is
// cut in k chunks.
func (g *Group) placeParts(prog *program, c *Call, k int) (layout, error) {
	isRoot := g.rank == c.Root || !c.Kind.Rooted()
	if !isRoot {
		return g.placeOwnPart(prog, c, k)
	}
	whole, mine := c.Out, c.In // of a gathering operation
	wholeMemory, mineMemory := outMemory, inMemory
	scatters := c.Kind == plan.ReduceScatter || c.Kind == plan.Scatter
	if scatters || c.Out.Len == 0 {
		whole, mine, wholeMemory, mineMemory = c.In, c.Out, inMemory, outMemory
	}
	parts := c.InBounds
	if parts == nil {
		parts = plan.Cut(whole.Len, len(g.ranks))
	}
	own := region{wholeMemory, parts[g.rank], parts[g.rank+1]}
	if parts[len(g.ranks)] != whole.Len {
		return nil, fmt.Errorf("bounds up to %d of a vector of %d", parts[len(g.ranks)], whole.Len)
	}
	inPlace := c.Out.Len == 0
	if c.Kind == plan.ReduceScatter && own.hi == own.lo {
		inPlace = false // an output of an empty part looks like none
	}
	if !inPlace && mine.Len != own.hi-own.lo {
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", own.hi-own.lo, mine.Len)
	}
	copied := [2]region{{mineMemory, 0, mine.Len}, own}
	switch {
	case inPlace:
	case !scatters:
		prog.before = append(prog.before, [2]region{copied[1], copied[0]})
	case c.Kind == plan.ReduceScatter: // the input must stay as it is
		prog.scratch = whole.Len
		prog.before = append(prog.before, [2]region{{scratchMemory, 0, whole.Len}, {inMemory, 0, whole.Len}})
		own.mem, wholeMemory = scratchMemory, scratchMemory
		copied[1] = own
		fallthrough
	default:
		prog.after = append(prog.after, copied)
	}
	if c.Kind == plan.ReduceScatter && c.Op == Mean {
		prog.divide = own
	}
	return within(wholeMemory, subdivide(parts, k)), nil
}

// placeOwnPart is for the ranks of Gather and Scatter that are not the root:
// they hold their own part only.
func (g *Group) placeOwnPart(prog *program, c *Call, k int) (layout, error) {
	mem, length := inMemory, c.In.Len
	if c.Kind == plan.Scatter && c.Out.Len > 0 {
		mem, length = outMemory, c.Out.Len
	}
	if c.InBounds != nil {
		if want := c.InBounds[g.rank+1] - c.InBounds[g.rank]; want != length {
			return nil, fmt.Errorf("a part of %d elements in a buffer of %d", want, length)
		}
	}
	bounds := plan.Cut(length, k)
	first := g.rank * k
	return func(chunk, n int) region {
		if chunk < first || chunk+n > first+k {
			panic(fmt.Sprintf("collective: %v by %s passes through rank %d", c.Kind, prog.header.algorithm, g.rank))
		}
		return region{mem, bounds[chunk-first], bounds[chunk-first+n]}
	}, nil
}

// placeAllToAll has the parts to send in chunks [0, n), those to receive in
// [n, 2n).
func (g *Group) placeAllToAll(prog *program, c *Call, chunks int) (layout, error) {
	n := len(g.ranks)
	if chunks != 2*n {
		return nil, fmt.Errorf("all-to-all by %s needs %d chunks of scratch memory, which is not supported", prog.header.algorithm, chunks-2*n)
	}
	send, receive, into := inMemory, outMemory, c.Out
	if c.Out.Len == 0 && c.In.Len > 0 && (c.OutBounds == nil || c.OutBounds[n] > 0) {
		prog.scratch = c.In.Len
		prog.before = append(prog.before, [2]region{{scratchMemory, 0, c.In.Len}, {inMemory, 0, c.In.Len}})
		send, receive, into = scratchMemory, inMemory, c.In
	}
	cut := func(bounds []int, b device.Buf) ([]int, error) {
		if bounds == nil {
			return plan.Cut(b.Len, n), nil
		}
		if bounds[n] > b.Len {
			return nil, fmt.Errorf("bounds up to %d of a vector of %d", bounds[n], b.Len)
		}
		return bounds, nil
	}
	sent, err := cut(c.InBounds, c.In)
	if err != nil {
		return nil, err
	}
	received, err := cut(c.OutBounds, into)
	if err != nil {
		return nil, err
	}
	if a, b := sent[g.rank+1]-sent[g.rank], received[g.rank+1]-received[g.rank]; a != b {
		return nil, fmt.Errorf("a part of %d elements for the rank itself, and %d to receive", a, b)
	}
	return func(chunk, k int) region {
		if chunk < n {
			return region{send, sent[chunk], sent[chunk+k]}
		}
		return region{receive, received[chunk-n], received[chunk-n+k]}
	}, nil
}

// folds reports whether a call takes the one road of 16-bit sums: all-to-all of
// slices, a fold in float32 by each slice's owner in rank order, rounded once,
// and an all-gather of the results. Other orders would round at each addition.
func (g *Group) folds(c *Call) bool {
	t := c.typ()
	return (t == device.F16 || t == device.BF16) && c.Kind.Reduces() && c.Op != Max && c.Op != Min
}

func (g *Group) compileFold(c *Call) (*program, error) {
	n := len(g.ranks)
	prog := &program{header: g.headerOf(c)}
	prog.header.algorithm = "fold"
	parts := c.InBounds
	if parts == nil {
		parts = plan.Cut(c.In.Len, n)
	}
	own := parts[g.rank+1] - parts[g.rank]
	result := outMemory
	if c.Out.Len == 0 {
		result = inMemory
	}
	switch {
	case parts[n] != c.In.Len:
		return nil, fmt.Errorf("bounds up to %d of a vector of %d", parts[n], c.In.Len)
	case c.Kind == plan.ReduceScatter && c.Out.Len != 0 && c.Out.Len != own:
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", own, c.Out.Len)
	case c.Kind != plan.ReduceScatter && c.Out.Len != 0 && c.Out.Len != c.In.Len:
		return nil, fmt.Errorf("input of %d elements, output of %d", c.In.Len, c.Out.Len)
	}
	prog.scratch = n * own
	g.add(prog, plan.Pairwise(plan.AllToAll, n, 0), func(chunk, k int) region {
		if chunk < n {
			return region{inMemory, parts[chunk], parts[chunk+k]}
		}
		return region{scratchMemory, (chunk - n) * own, (chunk - n + k) * own}
	})
	prog.steps = append(prog.steps, step{fold: true})
	for r := range n {
		prog.parts = append(prog.parts, region{scratchMemory, r * own, (r + 1) * own})
	}
	prog.fold = region{result, parts[g.rank], parts[g.rank+1]}
	whole := within(result, parts)
	switch {
	case c.Kind == plan.AllReduce:
		g.add(prog, plan.Pairwise(plan.AllGather, n, 0), whole)
	case c.Kind == plan.ReduceScatter && c.Out.Len != 0:
		prog.fold = region{outMemory, 0, own}
	case c.Kind == plan.Reduce && g.rank != c.Root:
		prog.fold = region{scratchMemory, n * own, (n + 1) * own}
		prog.scratch += own
		whole = func(int, int) region { return prog.fold }
		fallthrough
	case c.Kind == plan.Reduce:
		g.add(prog, plan.Naive(plan.Gather, n, c.Root), whole)
	}
	return prog, nil
}
