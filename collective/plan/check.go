package plan

import (
	"fmt"
	"slices"
)

// Check proves that p carries out k: it runs p on symbols, where a chunk's value
// is the expression of sums that made it. It proves that every rank ends with
// the right chunks, that sums have every rank's value exactly once, and that all
// ranks get one expression, that is the same bits. The error names round, move
// (both from 0), rank and chunk.
//
// Time and memory grow with moves and with Ranks x Chunks: any algorithm of
// the list on 1024 ranks takes well under a second.
func (p Plan) Check(k Kind, root int) error {
	if err := p.shape(k, root); err != nil {
		return err
	}
	if k == Barrier {
		return p.checkBarrier()
	}
	m := newMachine(p, k, root, newExpressions(p.Ranks, p.Chunks, k))
	if err := m.run(p); err != nil {
		return fmt.Errorf("%v on %d ranks: %w", k, p.Ranks, err)
	}
	if err := m.finish(k, root); err != nil {
		return fmt.Errorf("%v on %d ranks: at the end %w", k, p.Ranks, err)
	}
	return nil
}

// SameOrder proves that two plans of k compute equal expressions, so that their
// results have the same bits. They need the same ranks and chunks.
func SameOrder(a, b Plan, k Kind, root int) error {
	if a.Ranks != b.Ranks || a.Chunks != b.Chunks {
		return fmt.Errorf("plans of %d ranks, %d chunks and of %d ranks, %d chunks", a.Ranks, a.Chunks, b.Ranks, b.Chunks)
	}
	e := newExpressions(a.Ranks, a.Chunks, k)
	ma, mb := newMachine(a, k, root, e), newMachine(b, k, root, e)
	if err := ma.run(a); err != nil {
		return fmt.Errorf("first plan: %w", err)
	}
	if err := mb.run(b); err != nil {
		return fmt.Errorf("second plan: %w", err)
	}
	for r := range a.Ranks {
		for c := range a.Chunks {
			va, vb := ma.at(r, c), mb.at(r, c)
			if needed(k, root, a.Ranks, a.Chunks, r, c) && va != vb {
				return fmt.Errorf("chunk %d of rank %d is %s in one and %s in the other", c, r, e.text(va), e.text(vb))
			}
		}
	}
	return nil
}

// maxProof is the largest Ranks x Chunks that Check takes on: a gigabyte.
const maxProof = 1 << 28

// shape checks what can be checked without running.
func (p Plan) shape(k Kind, root int) error {
	switch {
	case p.Ranks < 1 || p.Chunks < 1 || p.Rounds == nil:
		return fmt.Errorf("%v: a plan of %d ranks and %d chunks", k, p.Ranks, p.Chunks)
	case p.Ranks > maxProof/p.Chunks:
		return fmt.Errorf("%v: %d ranks x %d chunks are too many to prove", k, p.Ranks, p.Chunks)
	case root < 0 || root >= p.Ranks:
		return fmt.Errorf("%v: root %d of %d ranks", k, root, p.Ranks)
	case k.Parts() && p.Chunks%p.Ranks != 0:
		return fmt.Errorf("%v: %d chunks are no multiple of %d ranks", k, p.Chunks, p.Ranks)
	case k == AllToAll && p.Chunks < 2*p.Ranks:
		return fmt.Errorf("%v: %d chunks are fewer than two per rank of %d", k, p.Chunks, p.Ranks)
	}
	return nil
}

// machine is the state of a symbolic run: what every chunk of every rank holds.
type machine struct {
	ranks, chunks int
	holds         []value
	read          []value
	e             *expressions
}

func newMachine(p Plan, k Kind, root int, e *expressions) *machine {
	m := &machine{ranks: p.Ranks, chunks: p.Chunks, holds: make([]value, p.Ranks*p.Chunks), e: e}
	for r := range p.Ranks {
		for c := range p.Chunks {
			if given(k, root, p.Ranks, p.Chunks, r, c) {
				m.holds[r*p.Chunks+c] = e.leaf(r, c)
			}
		}
	}
	return m
}

func (m *machine) at(rank, chunk int) value { return m.holds[rank*m.chunks+chunk] }

func (m *machine) run(p Plan) error {
	i := 0
	for round := range p.Rounds {
		if err := m.round(i, round); err != nil {
			return err
		}
		i++
	}
	return nil
}

// round reads what all moves send, then applies them in list order.
func (m *machine) round(i int, round Round) error {
	m.read = m.read[:0]
	for j, v := range round {
		if err := v.fits(m.ranks, m.chunks); err != nil {
			return fmt.Errorf("round %d, move %d (%v): %w", i, j, v, err)
		}
		at := v.From*m.chunks + v.Src
		m.read = append(m.read, m.holds[at:at+v.N]...)
		if c := slices.Index(m.holds[at:at+v.N], nothing); c >= 0 {
			return fmt.Errorf("round %d, move %d (%v): chunk %d of rank %d holds nothing yet", i, j, v, v.Src+c, v.From)
		}
	}
	next := 0
	for j, v := range round {
		sent := m.read[next : next+v.N]
		next += v.N
		into := m.holds[v.To*m.chunks+v.Dst:][:v.N]
		if !v.Reduce {
			copy(into, sent)
			continue
		}
		for c := range sent {
			switch {
			case into[c] == nothing:
				return fmt.Errorf("round %d, move %d (%v): reduces into chunk %d of rank %d, which holds nothing", i, j, v, v.Dst+c, v.To)
			case m.e.chunk(into[c]) != m.e.chunk(sent[c]):
				return fmt.Errorf("round %d, move %d (%v): reduces chunk %d of rank %d into another chunk, %d of rank %d", i, j, v, v.Src+c, v.From, v.Dst+c, v.To)
			}
			into[c] = m.e.add(into[c], sent[c], i, j)
		}
	}
	return nil
}

// finish compares what the ranks hold with what k promises.
func (m *machine) finish(k Kind, root int) error {
	proved := map[value]bool{}
	for c := range m.chunks {
		agreed := nothing
		for r := range m.ranks {
			if !needed(k, root, m.ranks, m.chunks, r, c) {
				continue
			}
			v := m.at(r, c)
			if v == nothing {
				return fmt.Errorf("chunk %d of rank %d holds nothing", c, r)
			}
			if !k.Reduces() {
				if want := m.origin(k, root, r, c); v != want {
					return fmt.Errorf("chunk %d of rank %d holds %s instead of %s", c, r, m.e.text(v), m.e.text(want))
				}
				continue
			}
			switch {
			case m.e.chunk(v) != c:
				return fmt.Errorf("chunk %d of rank %d holds %s", c, r, m.e.text(v))
			case !proved[v] && !m.e.complete(v):
				return fmt.Errorf("chunk %d of rank %d %s: it is %s", c, r, m.e.why(v), m.e.text(v))
			case agreed != nothing && v != agreed:
				return fmt.Errorf("chunk %d of rank %d was summed in another order than elsewhere: %s, not %s", c, r, m.e.text(v), m.e.text(agreed))
			}
			proved[v], agreed = true, v
		}
	}
	return nil
}

// origin is the value that chunk c of rank r must hold after an operation that
// only moves.
func (m *machine) origin(k Kind, root, r, c int) value {
	switch k {
	case Broadcast, Scatter:
		return m.e.leaf(root, c)
	case AllToAll:
		return m.e.leaf(c-m.ranks, r)
	}
	return m.e.leaf(c/(m.chunks/m.ranks), c)
}

// given reports whether chunk c of rank r holds something at the start.
func given(k Kind, root, ranks, chunks, r, c int) bool {
	switch k {
	case Broadcast, Scatter:
		return r == root
	case AllGather, Gather:
		return c/(chunks/ranks) == r
	case AllToAll:
		return c < ranks
	}
	return true
}

// needed reports whether chunk c of rank r is part of the result.
func needed(k Kind, root, ranks, chunks, r, c int) bool {
	switch k {
	case Reduce, Gather:
		return r == root
	case ReduceScatter, Scatter:
		return c/(chunks/ranks) == r
	case AllToAll:
		return c >= ranks && c < 2*ranks
	}
	return true
}

func (m Move) fits(ranks, chunks int) error {
	switch {
	case m.From < 0 || m.From >= ranks || m.To < 0 || m.To >= ranks:
		return fmt.Errorf("no such rank among %d", ranks)
	case m.N < 1 || m.Src < 0 || m.Dst < 0 || m.Src+m.N > chunks || m.Dst+m.N > chunks:
		return fmt.Errorf("no such chunks among %d", chunks)
	}
	return nil
}

// checkBarrier proves that every rank has, at the end, heard of all others.
func (p Plan) checkBarrier() error {
	words := (p.Ranks + 63) / 64
	heard := make([]uint64, p.Ranks*words)
	for r := range p.Ranks {
		heard[r*words+r/64] |= 1 << (r % 64)
	}
	before := make([]uint64, len(heard))
	i := 0
	for round := range p.Rounds {
		copy(before, heard)
		for j, m := range round {
			if err := m.fits(p.Ranks, p.Chunks); err != nil {
				return fmt.Errorf("barrier: round %d, move %d (%v): %w", i, j, m, err)
			}
			for w := range words {
				heard[m.To*words+w] |= before[m.From*words+w]
			}
		}
		i++
	}
	for r := range p.Ranks {
		for other := range p.Ranks {
			if heard[r*words+other/64]&(1<<(other%64)) == 0 {
				return fmt.Errorf("barrier on %d ranks: at the end rank %d has not heard of rank %d", p.Ranks, r, other)
			}
		}
	}
	return nil
}
