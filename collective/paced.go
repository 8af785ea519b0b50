package collective

import "github.com/gradfusion/gradfusion/collective/plan"

// A paced all-reduce is for ranks on hosts of their own that slow links join. It
// is the direct one, all-to-all of slices, sum by the owner and all-gather, in
// pieces that are eager messages, so that none waits to be granted, and
// acknowledgements and small messages never lie behind more than about a megabyte.
// Large messages fill whatever the path queues: at 1 Gbit/s tens of milliseconds,
// which a call in the other direction, or the next one's first message, then lose
// on the way. The price are two copies, which a slow link hides.
const (
	pacedBelow = 400e6     // bytes a second of links that it is for
	pacedRanks = 8         // and how many ranks at most: beyond that slices are tiny
	pacedLeast = 256 << 10 // bytes of a vector
	pacedLag   = 16        // pieces by which results follow contributions
	pacedName  = "paced"
)

// paces reports whether a call takes that way: where the algorithm is left to the
// group. It asks only for what all ranks have alike, which whether a rank gives an
// output of its own is not.
func (g *Group) paces(c *Call) bool {
	n, rate := len(g.ranks), g.config.Links.Across.BytesPerSecond
	auto := func(name string) bool { return name == "" || name == "auto" }
	return c.Kind == plan.AllReduce && auto(c.Algorithm) && auto(g.config.Algorithm) &&
		n > 1 && n <= pacedRanks && len(g.hosts) == n && rate > 0 && rate < pacedBelow &&
		(c.Out.Len == 0 || c.Out.Len == c.In.Len) && c.InBounds == nil && c.In.Size() >= pacedLeast
}

func (g *Group) compilePaced(c *Call) *program {
	a, n := g.assemble(c), len(g.ranks)
	a.header.algorithm = pacedName
	work := outMemory
	if c.Out.Len == 0 {
		work = inMemory
	}
	most := n * (smallLimit/c.typ().Size() - 4*codedGrain)
	pieces := (c.In.Len + most - 1) / most
	cuts := cutEvenly(0, c.In.Len, pieces)
	part := func(mem memory, p, owner int) region {
		bounds := cutEvenly(cuts[p], cuts[p+1], n)
		return region{mem, bounds[owner], bounds[owner+1]}
	}
	others := func(visit func(to, from int)) {
		for step := 1; step < n; step++ {
			visit((g.rank+step)%n, (g.rank-step+n)%n)
		}
	}
	for p := range pieces + pacedLag {
		q := p - pacedLag
		if p < pieces {
			others(func(to, _ int) { a.send(to, part(inMemory, p, to), true) })
			opens := work == outMemory
			others(func(_, from int) {
				a.act(action{span: span{at: part(work, p, g.rank)}, kind: receiveAction, peer: from, reduce: true, opens: opens, left: part(inMemory, p, g.rank)})
				opens = false
			})
		}
		if q >= 0 && q < pieces {
			others(func(to, _ int) { a.send(to, part(work, q, g.rank), false) })
			others(func(_, from int) {
				a.act(action{span: span{at: part(work, q, from)}, kind: receiveAction, peer: from})
			})
		}
	}
	if c.Op == Mean {
		a.divide = region{work, 0, c.In.Len}
	}
	a.inline = false // it sends ahead of what it receives
	return a.program
}
