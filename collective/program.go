package collective

import (
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// memory is one of the buffers that a program works on.
type memory uint8

const (
	inMemory memory = iota
	outMemory
	scratchMemory
	keptMemory // copies of what a round sends and overwrites
	wireMemory // encoded values, in bytes
	memories
)

// unit is the bytes of an element of a memory, for a call of a type.
func (m memory) unit(t device.Type) int {
	if m == wireMemory {
		return 1
	}
	return t.Size()
}

// region is a run of elements in a memory.
type region struct {
	mem    memory
	lo, hi int
}

func (r region) size() int { return r.hi - r.lo }

func (r region) part(lo, hi int) region { return region{r.mem, r.lo + lo, r.lo + hi} }

func (r region) overlaps(other region) bool {
	return r.mem == other.mem && r.lo < other.hi && other.lo < r.hi
}

// need makes the elements from lo to hi of a region wait for the other side of
// the program: element lo until it has done count elements, the next one for one
// more, and so on.
type need struct {
	lo, hi int
	count  int64
}

// span is a transfer or action as the other side sees it: base elements were
// done before its first.
type span struct {
	at   region
	base int64
}

// transfer is a message to send.
type transfer struct {
	span
	peer   int
	reduce bool
	after  int    // inline: how many actions precede it
	needs  []need // of actions
}

type actionKind uint8

const (
	receiveAction actionKind = iota
	copyAction
	reduceAction
	foldAction
	beginAction // the actions from here on are a Codec's
	encodeAction
	encodeSumAction
	decodeAction
	decodeAddAction
)

// action is what a rank does beside sending: it receives into at, or copies,
// reduces, folds, encodes or decodes from other places.
type action struct {
	span
	kind   actionKind
	peer   int
	reduce bool // receiveAction: into what is there
	opens  bool // a reduction takes its left side from left, not from at
	left   region
	from   region   // copyAction, reduceAction, and a Codec's
	parts  []region // foldAction
	needs  []need   // of transfers
}

// program is a plan compiled for one call shape and rank: what concerns the
// rank, in elements. Transfers and actions are two lists in the plan's order;
// each waits for no more of the other than it depends on, so that a chunk is
// passed on while it arrives.
//
// There is no deadlock: all ranks follow one order, rounds and in them the
// round's list, so the first unfinished move of all can always proceed. All that
// its two ranks have to do before it is part of earlier moves.
type program struct {
	header    header
	transfers []transfer
	actions   []action
	after     [][2]region // copies at the end: to, from
	divide    region      // by the number of ranks, before that
	inline    bool        // no transfer waits for its receiver: one goroutine does all
	scratch   int         // elements of scratch memory
	kept      int         // and of kept memory
	wire      int         // bytes of encoded values
	sent      int64       // bytes
	received  int64
	shared    bool  // it may run on shared memory instead
	parted    []int // the ranks' parts, for kinds that have them
}

// assembly makes a program.
type assembly struct {
	*program
	rank        int
	read        []span // by transfers
	written     []span // by actions
	reads, acts int64  // elements so far
}

func (g *Group) assemble(c *Call) *assembly {
	return &assembly{program: &program{header: g.headerOf(c), inline: true}, rank: g.rank}
}

func (a *assembly) send(peer int, at region, reduce bool) {
	s := span{at, a.reads}
	bytes := at.size() * at.mem.unit(a.header.typ)
	a.transfers = append(a.transfers, transfer{span: s, peer: peer, reduce: reduce, after: len(a.actions), needs: waits(at, a.written)})
	a.read = append(a.read, s)
	a.reads += int64(at.size())
	a.sent += int64(bytes)
	a.inline = a.inline && bytes <= smallLimit
}

func (a *assembly) act(act action) {
	act.base, act.needs = a.acts, waits(act.at, a.read)
	a.actions = append(a.actions, act)
	a.written = append(a.written, act.span)
	a.acts += int64(act.at.size())
	switch act.at.mem {
	case scratchMemory:
		a.scratch = max(a.scratch, act.at.hi)
	case wireMemory:
		a.wire = max(a.wire, act.at.hi)
	}
	if act.kind == receiveAction {
		a.received += int64(act.at.size() * act.at.mem.unit(a.header.typ))
	}
}

func (a *assembly) copy(to, from region) {
	if to.size() > 0 {
		a.act(action{span: span{at: to}, kind: copyAction, from: from})
	}
}

// waits lists which of the earlier spans touch at, newest first, as far as newer
// ones do not hide them: each side is done in order.
func waits(at region, earlier []span) []need {
	var needs []need
	for i := len(earlier) - 1; i >= 0 && at.size() > 0; i-- {
		s := earlier[i]
		if !s.at.overlaps(at) {
			continue
		}
		lo, hi := max(s.at.lo, at.lo), min(s.at.hi, at.hi)
		needs = append(needs, need{lo - at.lo, hi - at.lo, s.base + int64(lo-s.at.lo)})
		if hi-lo == at.size() {
			break
		}
	}
	return needs
}

// required is the count that elements lo to hi of a region wait for.
func required(needs []need, lo, hi int) int64 {
	count := int64(0)
	for i := range needs {
		if n := &needs[i]; n.lo < hi && lo < n.hi {
			count = max(count, n.count+int64(min(hi, n.hi)-n.lo))
		}
	}
	return count
}

// own lists the moves of a plan that concern this rank, by round.
func (g *Group) own(p plan.Plan) []plan.Round {
	var rounds []plan.Round
	var all plan.Round
	for round := range p.Rounds {
		first := len(all)
		for i := range round {
			if m := &round[i]; m.From == g.rank || m.To == g.rank {
				all = append(all, *m)
			}
		}
		if len(all) > first {
			rounds = append(rounds, all[first:len(all):len(all)])
		}
	}
	return rounds
}

// add appends the moves of this rank.
func (a *assembly) add(rounds []plan.Round, v *view) {
	var s scene
	for _, round := range rounds {
		s.set(a, round, v)
		s.keep(a, round)
		for i, m := range round {
			if m.From == a.rank && m.To != a.rank {
				a.send(m.To, s[i].source, m.Reduce)
			}
		}
		for i, m := range round {
			if m.To != a.rank {
				continue
			}
			act := action{span: span{at: s[i].target}, kind: receiveAction, peer: m.From, reduce: m.Reduce, opens: s[i].opens, left: s[i].left}
			if m.From == a.rank {
				act.kind, act.from = copyAction, s[i].source
				if m.Reduce {
					act.kind = reduceAction
				}
			}
			a.act(act)
		}
	}
}

// scene is where the moves of a round read and write.
type scene []struct {
	source, target region
	opens          bool
	left           region
}

// set finds all sources before any target, since moves read what was there
// before the round.
func (s *scene) set(a *assembly, round plan.Round, v *view) {
	*s = append((*s)[:0], make(scene, len(round))...)
	for i, m := range round {
		if m.From == a.rank {
			(*s)[i].source = v.source(a, m.Src, m.N)
		}
	}
	for i, m := range round {
		if m.To == a.rank {
			p := &(*s)[i]
			p.target, p.left, p.opens = v.target(a, m.Dst, m.N, m.Reduce)
		}
	}
}

// keep copies what is written in the round before it has been read: one rank's
// share of plan.Hazards.
func (s scene) keep(a *assembly, round plan.Round) {
	kept := 0
	for i, m := range round {
		if m.From != a.rank {
			continue
		}
		source := s[i].source
		for j, other := range round {
			if other.To == a.rank && s[j].target.overlaps(source) {
				copied := region{keptMemory, kept, kept + source.size()}
				a.copy(copied, source)
				s[i].source, kept = copied, copied.hi
				break
			}
		}
	}
	a.kept = max(a.kept, kept)
}
