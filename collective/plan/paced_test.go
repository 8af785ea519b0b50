package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

func paced(t *testing.T) plan.Algorithm {
	a, err := plan.Lookup("paced")
	require.NoError(t, err)
	return a
}

// pacedWorlds are several hosts, equal and not, side by side and interleaved, and one.
func pacedWorlds() []plan.World {
	return []plan.World{
		{Ranks: 1}, {Ranks: 3}, apart(2), apart(5), hostsOf(4, 2), hostsOf(6, 2), hostsOf(6, 3), hostsOf(8, 2), hostsOf(5, 3),
		{Ranks: 4, Hosts: [][]int{{0, 2}, {1, 3}}},
		{Ranks: 6, Hosts: [][]int{{0, 5}, {1, 3}, {2, 4}}},
		{Ranks: 7, Hosts: [][]int{{0, 3}, {1}, {2, 4, 5, 6}}},
	}
}

// TestPacedInPieces: of any length it is an all-reduce, in moves that are short enough
// to be sent unasked, of which none writes what another one of its round still reads.
func TestPacedInPieces(t *testing.T) {
	const k, most = plan.AllReduce, 63 << 10
	a := paced(t)
	for _, w := range pacedWorlds() {
		for _, bytes := range []int{0, 4, 256 << 10, 1 << 20, 12_345_678} {
			p := a.For(k, w, 0, bytes)
			require.NoError(t, p.Check(k, 0), "%d bytes on %v", bytes, w)
			for range p.Hazards() {
				t.Errorf("%d bytes on %v: a hazard", bytes, w)
			}
			require.LessOrEqual(t, bytes/p.Chunks, most, "%d bytes on %v", bytes, w)
			whole := plan.Paced(k, w, 0)
			require.Zero(t, p.Chunks%whole.Chunks)
			pieces := p.Chunks / whole.Chunks
			for round := range p.Rounds {
				require.NotEmpty(t, round)
				for _, m := range round {
					require.Equal(t, 1, m.N, "a move of one message")
				}
			}
			_, moves := whole.Count()
			_, all := p.Count()
			require.Equal(t, pieces*moves, all)
		}
	}
}

// TestPacedRounds: 4, and of many pieces as many as there are and the distance of a
// piece's last step from its first.
func TestPacedRounds(t *testing.T) {
	for _, tt := range []struct {
		w                plan.World
		steps, lead, lag int
	}{
		{hostsOf(4, 2), 4, 2, 8},
		{hostsOf(6, 3), 4, 2, 5},
		{hostsOf(16, 8), 4, 2, 4},
		{apart(4), 2, 0, 16},
		{plan.World{Ranks: 4}, 2, 2, 0},
	} {
		rounds, _ := plan.Paced(plan.AllReduce, tt.w, 0).Count()
		require.Equal(t, tt.steps, rounds, "%v", tt.w)
		const pieces = 100
		chunks := plan.Paced(plan.AllReduce, tt.w, 0).Chunks
		p := paced(t).For(plan.AllReduce, tt.w, 0, pieces*chunks*60<<10)
		require.Equal(t, pieces*chunks, p.Chunks)
		rounds, _ = p.Count()
		require.Equal(t, pieces+2*tt.lead+tt.lag, rounds, "%v", tt.w)
	}
}

// TestPacedOrder: an owner's own value first, then around its host, then the hosts.
func TestPacedOrder(t *testing.T) {
	w := plan.World{Ranks: 6, Hosts: [][]int{{0, 3, 4}, {1, 2, 5}}}
	// Of the slice that ranks 3 and 2 own, the second, the part of rank 3: chunk 2.
	const chunk = 2
	var in, out plan.Round
	add := func(to int, from ...int) {
		for _, r := range from {
			in = append(in, plan.Move{From: r, To: to, Src: chunk, Dst: chunk, N: 1, Reduce: true})
		}
	}
	add(3, 0, 4)
	add(2, 1, 5)
	across := plan.Round{{From: 2, To: 3, Src: chunk, Dst: chunk, N: 1, Reduce: true}}
	for _, r := range []int{0, 1, 2, 4, 5} {
		out = append(out, plan.Move{From: 3, To: r, Src: chunk, Dst: chunk, N: 1})
	}
	rounds := plan.Paced(plan.AllReduce, w, 0).Collect()
	for i, round := range rounds { // the plan's, of all other chunks
		var others plan.Round
		for _, m := range round {
			if m.Src != chunk {
				others = append(others, m)
			}
		}
		rounds[i] = others
	}
	rounds[0], rounds[1], rounds[2] = append(rounds[0], in...), append(rounds[1], across...), append(rounds[2], out...)
	want := plan.Of(6, 6, rounds...)
	require.NoError(t, plan.SameOrder(plan.Paced(plan.AllReduce, w, 0), want, plan.AllReduce, 0))
}

// TestPacedCost: what crosses hides what goes on inside hosts. The link's lower bound
// for h hosts is 2 (h-1)/h of the vector at its rate.
func TestPacedCost(t *testing.T) {
	const bytes, rate = 64 << 20, 117e6
	links := plan.Links{
		Host:   plan.Link{Latency: 3 * time.Microsecond, PerMessage: time.Microsecond, BytesPerSecond: 5e9},
		Across: plan.Link{Latency: 40 * time.Microsecond, PerMessage: 10 * time.Microsecond, BytesPerSecond: rate},
	}
	for _, w := range []plan.World{apart(2), apart(4), hostsOf(4, 2), hostsOf(6, 2), hostsOf(16, 4), {Ranks: 4, Hosts: [][]int{{0, 2}, {1, 3}}}} {
		h := float64(len(w.Hosts))
		p := paced(t).For(plan.AllReduce, w, 0, bytes)
		require.Equal(t, plan.Hierarchical(plan.AllReduce, w, 0).Traffic(w, bytes), p.Traffic(w, bytes), "%v", w)
		bound := 2 * (h - 1) / h * bytes / rate
		cost := p.Cost(w, links, bytes).Seconds()
		t.Logf("%v: %.1f ms, %.3f of the bound", w.Hosts, 1000*cost, cost/bound)
		require.GreaterOrEqual(t, cost, bound, "%v", w)
		// Filling and emptying the pipeline, and each message's own costs.
		require.Less(t, cost, 1.1*bound, fmt.Sprint(w))
	}
}
