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
	if g.codes(c) {
		return g.compileCoded(c)
	}
	if g.folds(c) {
		return g.compileFold(c)
	}
	bytes := g.headerOf(c).count * c.typ().Size()
	algorithm, err := g.algorithm(c, bytes)
	if err != nil {
		return nil, err
	}
	prog, err := g.compilePlan(c, algorithm.Name, algorithm.For(c.Kind, g.world(), c.Root, bytes))
	if err == nil && algorithm.Sized != nil {
		prog.inline = false // it sends ahead of what it receives
	}
	return prog, err
}

func (g *Group) compilePlan(c *Call, name string, p plan.Plan) (*program, error) {
	a := g.assemble(c)
	a.header.algorithm = name
	rounds := g.own(p)
	v, needed, err := g.place(a, c, p.Chunks, rounds)
	if err != nil {
		return nil, err
	}
	a.add(rounds, v)
	v.settle(needed[0], needed[1]-needed[0], a.copy)
	return a.program, nil
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
		if err := ValidateCoded(c); err != nil {
			return err
		}
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

// place decides where the chunks of c lie and what is copied beside the plan.
// needed is the run of chunks that the rank must have in the end.
func (g *Group) place(a *assembly, c *Call, chunks int, rounds []plan.Round) (v *view, needed [2]int, err error) {
	n := len(g.ranks)
	switch c.Kind {
	case plan.Barrier:
		return newView(within(inMemory, make([]int, chunks+1))), needed, nil
	case plan.AllToAll:
		v, err = g.placeAllToAll(a, c, chunks, rounds)
	case plan.AllReduce, plan.Reduce, plan.Broadcast:
		if c.Kind != plan.Reduce || g.rank == c.Root {
			needed[1] = chunks
		}
		v, err = g.placeWhole(a, c, chunks)
	case plan.ReduceScatter:
		needed = [2]int{g.rank * (chunks / n), (g.rank + 1) * (chunks / n)}
		v, err = g.placeReduceScatter(a, c, chunks, rounds)
	default:
		v, err = g.placeParts(a, c, chunks/n, rounds)
	}
	return v, needed, err
}

// placeWhole is for operations whose ranks all hold the whole vector.
func (g *Group) placeWhole(a *assembly, c *Call, chunks int) (*view, error) {
	n := len(g.ranks)
	work, total := outMemory, c.Out.Len
	reads := c.Kind != plan.Broadcast || g.rank == c.Root
	switch {
	case c.Out.Len == 0:
		work, total, reads = inMemory, c.In.Len, false
	case c.In.Len != c.Out.Len && (reads || c.In.Len != 0):
		return nil, fmt.Errorf("input of %d elements, output of %d", c.In.Len, c.Out.Len)
	}
	bounds := plan.Cut(total, chunks)
	if c.InBounds != nil {
		if err := checkBounds(c.InBounds, total); err != nil {
			return nil, err
		}
		if chunks%n == 0 {
			bounds = subdivide(c.InBounds, chunks/n)
		}
	}
	if c.Op == Mean && (c.Kind == plan.AllReduce || c.Kind == plan.Reduce && g.rank == c.Root) {
		a.divide = region{work, 0, total}
	}
	if reads {
		return over(within(inMemory, bounds), within(work, bounds), chunks), nil
	}
	return newView(within(work, bounds)), nil
}

// placeReduceScatter works in scratch memory where the input must stay as it is,
// and on the own part straight in the output, when the plan lets it.
func (g *Group) placeReduceScatter(a *assembly, c *Call, chunks int, rounds []plan.Round) (*view, error) {
	n := len(g.ranks)
	parts := c.InBounds
	if parts == nil {
		parts = plan.Cut(c.In.Len, n)
	}
	if err := checkBounds(parts, c.In.Len); err != nil {
		return nil, err
	}
	k := chunks / n
	bounds := subdivide(parts, k)
	own := region{inMemory, parts[g.rank], parts[g.rank+1]}
	inPlace := within(inMemory, bounds)
	switch {
	case c.Out.Len == 0 && own.size() > 0: // an output of an empty part looks like none
		if c.Op == Mean {
			a.divide = own
		}
		return newView(inPlace), nil
	case c.Out.Len != own.size():
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", own.size(), c.Out.Len)
	}
	place := within(scratchMemory, bounds)
	out := region{outMemory, 0, own.size()}
	first := g.rank * k
	if _, straddles := g.relays(rounds, first, first+k); straddles {
		own.mem = scratchMemory
		a.after = append(a.after, [2]region{out, own})
		out = own
	} else {
		elsewhere := place
		place = func(chunk, n int) region {
			if chunk < first || chunk >= first+k {
				return elsewhere(chunk, n)
			}
			return region{outMemory, bounds[chunk] - own.lo, bounds[chunk+n] - own.lo}
		}
	}
	if c.Op == Mean {
		a.divide = out
	}
	return over(inPlace, place, chunks), nil
}

// placeParts is for AllGather, Gather and Scatter; every rank's part is cut in k
// chunks.
func (g *Group) placeParts(a *assembly, c *Call, k int, rounds []plan.Round) (*view, error) {
	if c.Kind.Rooted() && g.rank != c.Root {
		return g.placeOwnPart(a, c, k, rounds)
	}
	whole, mine := c.Out, c.In // of a gathering operation
	wholeMemory, mineMemory := outMemory, inMemory
	if c.Kind == plan.Scatter || c.Out.Len == 0 {
		whole, mine, wholeMemory, mineMemory = c.In, c.Out, inMemory, outMemory
	}
	parts := c.InBounds
	if parts == nil {
		parts = plan.Cut(whole.Len, len(g.ranks))
	}
	if err := checkBounds(parts, whole.Len); err != nil {
		return nil, err
	}
	own := region{wholeMemory, parts[g.rank], parts[g.rank+1]}
	inPlace := c.Out.Len == 0
	if !inPlace && mine.Len != own.size() {
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", own.size(), mine.Len)
	}
	part := region{mineMemory, 0, mine.Len}
	switch {
	case inPlace:
	case c.Kind == plan.Scatter:
		a.after = append(a.after, [2]region{part, own})
	default:
		a.copy(own, part)
	}
	return newView(within(wholeMemory, subdivide(parts, k))), nil
}

// placeOwnPart is for the ranks of Gather and Scatter that are not the root:
// they hold their own part only, unless others' parts pass through them. Then
// all lie in scratch memory.
func (g *Group) placeOwnPart(a *assembly, c *Call, k int, rounds []plan.Round) (*view, error) {
	mem, length := inMemory, c.In.Len
	if c.Kind == plan.Scatter && c.Out.Len > 0 {
		mem, length = outMemory, c.Out.Len
	}
	parts := c.InBounds
	if parts == nil { // of relayed parts, which all have one size
		parts = make([]int, len(g.ranks)+1)
		for r := range parts {
			parts[r] = r * length
		}
	}
	if want := parts[g.rank+1] - parts[g.rank]; want != length {
		return nil, fmt.Errorf("a part of %d elements in a buffer of %d", want, length)
	}
	first := g.rank * k
	if relays, _ := g.relays(rounds, first, first+k); relays {
		part, own := region{mem, 0, length}, region{scratchMemory, parts[g.rank], parts[g.rank+1]}
		if c.Kind == plan.Gather {
			a.copy(own, part)
		} else {
			a.after = append(a.after, [2]region{part, own})
		}
		return newView(within(scratchMemory, subdivide(parts, k))), nil
	}
	bounds := plan.Cut(length, k)
	return newView(func(chunk, n int) region { return region{mem, bounds[chunk-first], bounds[chunk-first+n]} }), nil
}

// placeAllToAll has the parts to send in chunks [0, n), those to receive in
// [n, 2n), and beyond them scratch memory for parts that all have one size.
func (g *Group) placeAllToAll(a *assembly, c *Call, chunks int, rounds []plan.Round) (*view, error) {
	n := len(g.ranks)
	send, receive, into := inMemory, outMemory, c.Out
	if c.Out.Len == 0 && c.In.Len > 0 && (c.OutBounds == nil || c.OutBounds[n] > 0) {
		send, receive, into = scratchMemory, inMemory, c.In
		a.copy(region{scratchMemory, 0, c.In.Len}, region{inMemory, 0, c.In.Len})
	}
	cut := func(bounds []int, b device.Buf) ([]int, error) {
		switch {
		case bounds == nil:
			return plan.Cut(b.Len, n), nil
		case bounds[n] > b.Len:
			return nil, checkBounds(bounds, b.Len)
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
	if from, to := sent[g.rank+1]-sent[g.rank], received[g.rank+1]-received[g.rank]; from != to {
		return nil, fmt.Errorf("a part of %d elements for the rank itself, and %d to receive", from, to)
	}
	beyond, part := a.scratch, sent[1]
	mixed := false
	g.runs(rounds, func(chunk, k int) {
		mixed = mixed || chunk < n && chunk+k > n || chunk < 2*n && chunk+k > 2*n
	})
	if mixed {
		return nil, fmt.Errorf("all-to-all by %s: a move of what is sent together with what is received", a.header.algorithm)
	}
	return newView(func(chunk, k int) region {
		switch {
		case chunk < n:
			return region{send, sent[chunk], sent[chunk+k]}
		case chunk < 2*n:
			return region{receive, received[chunk-n], received[chunk-n+k]}
		}
		first := beyond + (chunk-2*n)*part
		return region{scratchMemory, first, first + k*part}
	}), nil
}
