package collective

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// memory is one of the buffers that a program works on.
type memory uint8

const (
	inMemory memory = iota
	outMemory
	scratchMemory
	keptMemory // copies of what plan.Hazards endangers
	memories
)

// region is a run of elements in a memory.
type region struct {
	mem    memory
	lo, hi int
}

// transfer is one rank's half of a move; a move from a rank to itself is a
// transfer with the own rank as peer, among the receives.
type transfer struct {
	peer   int
	at     region
	from   region // own moves only: where the values come from
	reduce bool
}

// step is what a rank does in one round; or, with fold, between two plans.
type step struct {
	keep            [][2]region // copies before anything is sent: to, from
	sends, receives []transfer
	large           bool // a send may wait for its receiver
	fold            bool
}

// program is a plan compiled for one call shape and rank: the moves that
// concern the rank, in elements.
type program struct {
	header   header
	before   [][2]region // copies: to, from
	steps    []step
	after    [][2]region
	divide   region // by the number of ranks, at the end
	fold     region // receives the fold of parts
	parts    []region
	scratch  int // elements of scratch memory
	kept     int // and of kept memory
	sent     int64
	received int64
	shared   bool  // it may run on shared memory instead
	parted   []int // the ranks' parts, for kinds that have them
}

// shape is what a program depends on, beside the Group.
type shape struct {
	kind                plan.Kind
	op                  Op
	typ                 device.Type
	root, in, out       int
	inBounds, outBounds uint64
	algorithm           string
}

func shapeOf(c *Call) shape {
	return shape{
		kind: c.Kind, op: c.Op, typ: c.typ(), root: c.Root, in: c.In.Len, out: c.Out.Len,
		inBounds: fingerprint(c.InBounds), outBounds: fingerprint(c.OutBounds), algorithm: c.Algorithm,
	}
}

func (c *Call) typ() device.Type {
	switch {
	case c.In.Len > 0:
		return c.In.Type
	case c.Out.Len > 0:
		return c.Out.Type
	}
	return max(c.In.Type, c.Out.Type) // an empty part still has its type
}

// fingerprint is 0 for no bounds.
func fingerprint(bounds []int) uint64 {
	if bounds == nil {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, b := range bounds {
		h = (h ^ uint64(b)) * 1099511628211
		h ^= h >> 29
	}
	return h | 1
}

// layout tells where a rank's chunks lie.
type layout func(chunk, n int) region

// within is the layout of chunks with these bounds in mem.
func within(mem memory, bounds []int) layout {
	return func(chunk, n int) region { return region{mem, bounds[chunk], bounds[chunk+n]} }
}

// subdivide cuts every part in k.
func subdivide(parts []int, k int) []int {
	bounds := []int{parts[0]}
	for i := range len(parts) - 1 {
		for _, b := range plan.Cut(parts[i+1]-parts[i], k)[1:] {
			bounds = append(bounds, parts[i]+b)
		}
	}
	return bounds
}

// add appends the own moves of p.
func (g *Group) add(prog *program, p plan.Plan, at layout) {
	var own plan.Round
	for round := range p.Rounds {
		own = own[:0]
		for _, m := range round {
			if m.From == g.rank || m.To == g.rank {
				own = append(own, m)
			}
		}
		if len(own) > 0 {
			prog.steps = append(prog.steps, g.step(prog, own, at))
		}
	}
}

// step compiles the own moves of a round.
func (g *Group) step(prog *program, own plan.Round, at layout) step {
	var s step
	kept, size := 0, prog.header.typ.Size()
	for _, m := range own {
		source := region{}
		if m.From == g.rank {
			source = at(m.Src, m.N)
		}
		bytes := (source.hi - source.lo) * size
		if m.From == g.rank && overwritten(m, own) {
			copied := region{keptMemory, kept, kept + source.hi - source.lo}
			s.keep = append(s.keep, [2]region{copied, source})
			source, kept = copied, copied.hi
		}
		switch {
		case m.From == m.To:
			s.receives = append(s.receives, transfer{peer: m.To, at: at(m.Dst, m.N), from: source, reduce: m.Reduce})
		case m.From == g.rank:
			s.large = s.large || bytes > smallLimit
			prog.sent += int64(bytes)
			s.sends = append(s.sends, transfer{peer: m.To, at: source, reduce: m.Reduce})
		default:
			t := transfer{peer: m.From, at: at(m.Dst, m.N), reduce: m.Reduce}
			prog.received += int64((t.at.hi - t.at.lo) * size)
			s.receives = append(s.receives, t)
		}
	}
	prog.kept = max(prog.kept, kept)
	return s
}

// overwritten reports whether a move of the round writes what m reads, on m's
// sending rank: one rank's share of plan.Hazards.
func overwritten(m plan.Move, round plan.Round) bool {
	for _, other := range round {
		if other.To == m.From && other.Dst < m.Src+m.N && m.Src < other.Dst+other.N {
			return true
		}
	}
	return false
}

// algorithm returns the plan's algorithm for a call, by the call's name for it,
// the group's selection, or by cost.
func (g *Group) algorithm(c *Call, bytes int) (plan.Algorithm, error) {
	n := len(g.ranks)
	// Parts of several sizes cannot be relayed.
	uneven := c.Kind == plan.AllToAll && (c.InBounds != nil || c.OutBounds != nil || c.In.Len%n != 0)
	relays := func(a plan.Algorithm) bool { return uneven && slices.Contains(a.Relays, c.Kind) }
	if name := c.Algorithm; name != "" && name != "auto" {
		a, err := plan.Lookup(name)
		switch {
		case err != nil:
		case !a.Does(c.Kind):
			err = fmt.Errorf("algorithm %s has no %v", name, c.Kind)
		case relays(a):
			err = fmt.Errorf("algorithm %s has no %v of parts of several sizes", name, c.Kind)
		}
		return a, err
	}
	if g.selectionError != nil {
		return plan.Algorithm{}, g.selectionError
	}
	a := g.selection.Choose(c.Kind, g.world(), bytes, g.config.Links)
	if relays(a) {
		return plan.Lookup("pairwise")
	}
	return a, nil
}

// world describes the group to plans.
func (g *Group) world() plan.World { return plan.World{Ranks: len(g.ranks), Hosts: g.hosts} }

// text describes a call for errors.
func (g *Group) text(c Call) string {
	if c.Kind == pointToPoint {
		return "exchange"
	}
	return g.headerOf(&c).String()
}

// headerOf is the header of a call without its algorithm and sequence number.
// count is what all ranks know alike.
func (g *Group) headerOf(c *Call) header {
	h := header{kind: c.Kind, typ: c.typ()}
	if c.Kind.Reduces() {
		h.op = c.Op
	}
	if c.Kind.Rooted() {
		h.root = c.Root
	}
	switch c.Kind {
	case plan.AllReduce, plan.Reduce, plan.Broadcast, plan.AllGather:
		h.count = max(c.In.Len, c.Out.Len)
	case plan.ReduceScatter:
		h.count = c.In.Len
	case plan.AllToAll:
		if c.InBounds == nil && c.OutBounds == nil {
			h.count = c.In.Len
		}
	case plan.Barrier:
		h.typ = 0
	case allocation:
		h.count = c.alloc.n
	}
	if c.Kind != plan.AllToAll && c.InBounds != nil {
		h.count = c.InBounds[len(c.InBounds)-1]
		f := fnv.New32a()
		fmt.Fprint(f, c.InBounds)
		h.bounds = f.Sum32()
	}
	return h
}
