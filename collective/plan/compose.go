package plan

import (
	"fmt"
	"iter"
	"slices"
)

// Then runs plans one after the other. All have the same ranks and chunks.
func Then(plans ...Plan) Plan {
	same("Then", plans)
	return Plan{Ranks: plans[0].Ranks, Chunks: plans[0].Chunks, Rounds: func(yield func(Round) bool) {
		for _, p := range plans {
			for round := range p.Rounds {
				if !yield(round) {
					return
				}
			}
		}
	}}
}

// Zip runs plans side by side: its round i holds the moves of round i of each.
// All have the same ranks and chunks. Since a move's send and receive share a
// round, zipped plans can neither deadlock nor mix messages.
func Zip(plans ...Plan) Plan {
	same("Zip", plans)
	return Plan{Ranks: plans[0].Ranks, Chunks: plans[0].Chunks, Rounds: func(yield func(Round) bool) {
		next := make([]func() (Round, bool), len(plans))
		for i, p := range plans {
			pull, stop := iter.Pull(p.Rounds)
			defer stop()
			next[i] = pull
		}
		for together := (Round)(nil); ; {
			together = together[:0]
			more := false
			for _, pull := range next {
				round, ok := pull()
				more = more || ok
				together = append(together, round...)
			}
			if !more || !yield(together) {
				return
			}
		}
	}}
}

// Shift renumbers ranks: what rank r did, rank (r+k) mod Ranks does. Chunks stay
// where they are, so it moves the root of a Reduce or Broadcast.
func (p Plan) Shift(k int) Plan {
	return p.mapped(p.Ranks, p.Chunks, func(m Move) Move {
		m.From, m.To = mod(m.From+k, p.Ranks), mod(m.To+k, p.Ranks)
		return m
	})
}

// OnRanks runs p on some ranks of a larger world: p's rank i is ranks[i] of
// total.
func OnRanks(p Plan, ranks []int, total int) Plan {
	if len(ranks) != p.Ranks {
		panic(fmt.Sprintf("plan: OnRanks: %d ranks given for a plan of %d", len(ranks), p.Ranks))
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= total || seen[r] {
			panic(fmt.Sprintf("plan: OnRanks: %v are no distinct ranks below %d", ranks, total))
		}
		seen[r] = true
	}
	ranks = slices.Clone(ranks)
	return p.mapped(total, p.Chunks, func(m Move) Move {
		m.From, m.To = ranks[m.From], ranks[m.To]
		return m
	})
}

// OnChunks runs p on a part of a larger vector: p's chunk i is chunk first+i of
// total.
func OnChunks(p Plan, first, total int) Plan {
	if first < 0 || first+p.Chunks > total {
		panic(fmt.Sprintf("plan: OnChunks: chunks [%d:%d] of %d", first, first+p.Chunks, total))
	}
	return p.mapped(p.Ranks, total, func(m Move) Move {
		m.Src, m.Dst = m.Src+first, m.Dst+first
		return m
	})
}

// Refine cuts every chunk of p in k: p's chunk i is chunks [k*i, k*(i+1)).
func (p Plan) Refine(k int) Plan {
	if k < 1 {
		panic(fmt.Sprintf("plan: Refine by %d", k))
	}
	return p.mapped(p.Ranks, p.Chunks*k, func(m Move) Move {
		m.Src, m.Dst, m.N = m.Src*k, m.Dst*k, m.N*k
		return m
	})
}

// OnRuns runs p on a part of a larger vector with chunks of its own sizes: p's
// chunk i is chunks [bounds[i], bounds[i+1]) of total. Moves of empty runs fall
// away.
func (p Plan) OnRuns(bounds []int, total int) Plan {
	if len(bounds) != p.Chunks+1 || !slices.IsSorted(bounds) || bounds[0] < 0 || bounds[p.Chunks] > total {
		panic(fmt.Sprintf("plan: OnRuns: %v does not cut %d chunks out of %d", bounds, p.Chunks, total))
	}
	bounds = slices.Clone(bounds)
	return p.mapped(p.Ranks, total, func(m Move) Move {
		first, last := bounds[m.Src], bounds[m.Src+m.N]
		m.Src, m.Dst, m.N = first, bounds[m.Dst], last-first
		return m
	})
}

// Union runs plans of the same ranks side by side, each on its own part of one
// vector: the first plan's chunks come first.
func Union(plans ...Plan) Plan {
	total := 0
	for _, p := range plans {
		total += p.Chunks
	}
	placed := make([]Plan, len(plans))
	first := 0
	for i, p := range plans {
		placed[i] = OnChunks(p, first, total)
		first += p.Chunks
	}
	return Zip(placed...)
}

func (p Plan) mapped(ranks, chunks int, f func(Move) Move) Plan {
	return Plan{Ranks: ranks, Chunks: chunks, Rounds: func(yield func(Round) bool) {
		var out Round
		for round := range p.Rounds {
			out = out[:0]
			for _, m := range round {
				if m = f(m); m.N > 0 {
					out = append(out, m)
				}
			}
			if !yield(out) {
				return
			}
		}
	}}
}

func same(name string, plans []Plan) {
	if len(plans) == 0 {
		panic("plan: " + name + " of no plan")
	}
	for _, p := range plans[1:] {
		if p.Ranks != plans[0].Ranks || p.Chunks != plans[0].Chunks {
			panic(fmt.Sprintf("plan: %s of %d ranks, %d chunks and %d ranks, %d chunks",
				name, plans[0].Ranks, plans[0].Chunks, p.Ranks, p.Chunks))
		}
	}
}
