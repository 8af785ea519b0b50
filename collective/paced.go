package collective

import (
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// A paced all-reduce is for hosts that slow links join. It is the hierarchical one:
// a sum of slices inside each host, across hosts the direct all-reduce of each
// slice, all-to-all of its parts, sum by the owner and all-gather, and inside again.
// It goes in pieces that are eager messages, so that none waits to be granted, and
// acknowledgements and small messages never lie behind more than about a megabyte.
// Large messages fill whatever the path queues: at 1 Gbit/s tens of milliseconds,
// which a call in the other direction, or the next one's first message, then lose
// on the way. The price are two copies, which a slow link hides. It hides what goes
// on inside hosts as well:
//
//	piece      0 1 2 3 4 5 ...        with pacedLead 2 and a lag of 3
//	inside     0 1 2 3 4 5 6 7 8 9    contributions to the slice
//	across         0 1 2 3 4 5 6 7    contributions to the part
//	across               0 1 2 3 4    sums of the part
//	inside                   0 1 2    sums of the slice
const (
	pacedBelow = 400e6     // bytes a second of links that it is for
	pacedHosts = 8         // and how many hosts at most: beyond that slices are tiny
	pacedRanks = 64        // and ranks
	pacedLeast = 256 << 10 // bytes of a vector
	pacedLag   = 16        // pieces by which a host's results follow its contributions
	pacedLead  = 2         // pieces by which what crosses follows what is summed inside
	pacedName  = "paced"
)

// paces reports whether a call takes that way: where the algorithm is left to the
// group, and all hosts have as many ranks. It asks only for what all ranks have
// alike, which whether a rank gives an output of its own is not.
func (g *Group) paces(c *Call) bool {
	n, rate := len(g.ranks), g.config.Links.Across.BytesPerSecond
	auto := func(name string) bool { return name == "" || name == "auto" }
	uneven := func(host []int) bool { return len(host) != len(g.hosts[0]) }
	return c.Kind == plan.AllReduce && auto(c.Algorithm) && auto(g.config.Algorithm) &&
		n <= pacedRanks && len(g.hosts) > 1 && len(g.hosts) <= pacedHosts && !slices.ContainsFunc(g.hosts, uneven) &&
		rate > 0 && rate < pacedBelow &&
		(c.Out.Len == 0 || c.Out.Len == c.In.Len) && c.InBounds == nil && c.In.Size() >= pacedLeast
}

// pacing makes a paced program.
type pacing struct {
	*assembly
	inside, across []int // the ranks of the host, and the one of each host that owns the same slice
	place, host    int   // of this rank in them
	cuts           []int // of the vector in pieces
	work           memory
}

func (g *Group) compilePaced(c *Call) *program {
	p := pacing{assembly: g.assemble(c), work: outMemory}
	p.header.algorithm = pacedName
	if c.Out.Len == 0 {
		p.work = inMemory
	}
	for h, host := range g.hosts {
		if place := slices.Index(host, g.rank); place >= 0 {
			p.inside, p.place, p.host = host, place, h
		}
	}
	for _, host := range g.hosts {
		p.across = append(p.across, host[p.place])
	}
	most := len(g.ranks) * (smallLimit/c.typ().Size() - 4*codedGrain)
	pieces := (c.In.Len + most - 1) / most
	p.cuts = cutEvenly(0, c.In.Len, pieces)
	lead, lag := 0, max(pacedLag/len(p.inside), 4)
	if len(p.inside) > 1 {
		lead = pacedLead
	}
	for i := range pieces + lead + lag + lead {
		steps := []func(int){p.sumInside, p.sumAcross, p.spreadAcross, p.spreadInside}
		for s, piece := range []int{i, i - lead, i - lead - lag, i - lead - lag - lead} {
			if piece >= 0 && piece < pieces {
				steps[s](piece)
			}
		}
	}
	if c.Op == Mean {
		p.divide = region{p.work, 0, c.In.Len}
	}
	p.inline = false // it sends ahead of what it receives
	return p.program
}

// part is the part of a piece that a host's rank owns, by their places.
func (p *pacing) part(mem memory, piece, place, host int) region {
	bounds := cutEvenly(p.cuts[piece], p.cuts[piece+1], len(p.inside)*len(p.across))
	i := place*len(p.across) + host
	return region{mem, bounds[i], bounds[i+1]}
}

// others visits the other places of n, each as a receiver and as a sender.
func others(n, own int, visit func(to, from int)) {
	for step := 1; step < n; step++ {
		visit((own+step)%n, (own-step+n)%n)
	}
}

// reduceFrom has what comes from a peer reduced into a part, the first time together with
// the rank's own contribution where that lies elsewhere.
func (p *pacing) reduceFrom(peer, piece, host int, opens bool) {
	p.act(action{
		span: span{at: p.part(p.work, piece, p.place, host)}, kind: receiveAction, peer: peer, reduce: true,
		opens: opens && p.work == outMemory, left: p.part(inMemory, piece, p.place, host),
	})
}

// sumInside sums the rank's slice of a piece over its host.
func (p *pacing) sumInside(piece int) {
	others(len(p.inside), p.place, func(to, _ int) {
		for h := range p.across {
			p.send(p.inside[to], p.part(inMemory, piece, to, h), true)
		}
	})
	first := true
	others(len(p.inside), p.place, func(_, from int) {
		for h := range p.across {
			p.reduceFrom(p.inside[from], piece, h, first)
		}
		first = false
	})
}

// sumAcross sums the rank's part of that over the hosts.
func (p *pacing) sumAcross(piece int) {
	from := inMemory
	if len(p.inside) > 1 {
		from = p.work
	}
	others(len(p.across), p.host, func(to, _ int) { p.send(p.across[to], p.part(from, piece, p.place, to), true) })
	first := from == inMemory
	others(len(p.across), p.host, func(_, from int) {
		p.reduceFrom(p.across[from], piece, p.host, first)
		first = false
	})
}

// spreadAcross brings the slice together again, and spreadInside the piece.
func (p *pacing) spreadAcross(piece int) {
	others(len(p.across), p.host, func(to, _ int) { p.send(p.across[to], p.part(p.work, piece, p.place, p.host), false) })
	others(len(p.across), p.host, func(_, from int) {
		p.act(action{span: span{at: p.part(p.work, piece, p.place, from)}, kind: receiveAction, peer: p.across[from]})
	})
}

func (p *pacing) spreadInside(piece int) {
	others(len(p.inside), p.place, func(to, _ int) {
		for h := range p.across {
			p.send(p.inside[to], p.part(p.work, piece, p.place, h), false)
		}
	})
	others(len(p.inside), p.place, func(_, from int) {
		for h := range p.across {
			p.act(action{span: span{at: p.part(p.work, piece, from, h)}, kind: receiveAction, peer: p.inside[from]})
		}
	})
}
