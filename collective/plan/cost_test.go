package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// exact has times that one can add in one's head: a message costs 1 ms of latency
// and 1 ms per megabyte across hosts, and hardly anything inside.
func exact() plan.Links {
	return plan.Links{
		Process:              plan.Link{BytesPerSecond: 1e15},
		Host:                 plan.Link{BytesPerSecond: 1e15},
		Across:               plan.Link{Latency: time.Millisecond, BytesPerSecond: 1e9},
		ReduceBytesPerSecond: 1e15,
	}
}

func milliseconds(t *testing.T, want float64, got time.Duration) {
	t.Helper()
	require.InDelta(t, want, got.Seconds()*1e3, 0.001)
}

func apart(n int) plan.World { return hostsOf(n, 1) }

func TestCostByHand(t *testing.T) {
	links := exact()
	const mb = 1_000_000
	// Six rounds of a megabyte to the neighbour: 6 x (1 + 1).
	milliseconds(t, 12, plan.Ring(plan.AllReduce, 4, 0).Cost(apart(4), links, 4*mb))
	// Nothing crosses inside a host.
	milliseconds(t, 0, plan.Ring(plan.AllReduce, 4, 0).Cost(plan.World{Ranks: 4}, links, 4*mb))
	// Three messages queue at the root, then three leave it: 1 + 3x4, twice.
	milliseconds(t, 26, plan.Naive(plan.AllReduce, 4, 0).Cost(apart(4), links, 4*mb))
	// A tree of 4: 1 and 3 queue at 2, up to 0, and back: 9 + 5 + 5 + 9.
	milliseconds(t, 28, plan.Tree(plan.AllReduce, 4, 0).Cost(apart(4), links, 4*mb))
	// Halves, quarters, and back: 4 latencies, 2 + 1 + 1 + 2.
	milliseconds(t, 10, plan.HalvingDoubling(plan.AllReduce, 4, 0).Cost(apart(4), links, 4*mb))
	// All at once: owner 3 takes 0's third message, 1's second and 2's first, in
	// this order: 4 + 1 + 1; then 1 + 3 for the sums.
	milliseconds(t, 10, plan.Direct(plan.AllReduce, 4, 0).Cost(apart(4), links, 4*mb))
	// Two ranks of a host share its interface: twice as long as one.
	pairs := plan.Of(4, 1, plan.Round{{From: 0, To: 2, N: 1}, {From: 1, To: 3, N: 1}})
	milliseconds(t, 5, pairs.Cost(apart(4), links, 4*mb))
	milliseconds(t, 9, pairs.Cost(hostsOf(4, 2), links, 4*mb))
	// Reductions keep the receiver busy: 4 more for 4 MB at 1 GB/s.
	links.ReduceBytesPerSecond = 1e9
	milliseconds(t, 9, plan.Naive(plan.Reduce, 2, 0).Cost(apart(2), links, 4*mb))
	// So does memory copied by the rank itself.
	milliseconds(t, 4, plan.Of(1, 2, plan.Round{{From: 0, To: 0, Dst: 1, N: 1}}).Cost(apart(1), links, 8*mb))
}

// TestCostOfIdleRanks: ranks that a round leaves alone do not wait for it.
func TestCostOfIdleRanks(t *testing.T) {
	p := plan.Of(4, 1, plan.Round{{From: 0, To: 1, N: 1}}, plan.Round{{From: 2, To: 3, N: 1}})
	milliseconds(t, 2, p.Cost(apart(4), exact(), 1_000_000))
}

func TestProcessesHaveALinkOfTheirOwn(t *testing.T) {
	links := exact()
	links.Process, links.Host = plan.Link{Latency: time.Second}, plan.Link{Latency: time.Minute}
	p := plan.Naive(plan.Reduce, 2, 0)
	milliseconds(t, 60_000, p.Cost(plan.World{Ranks: 2}, links, 0))
	milliseconds(t, 1000, p.Cost(plan.World{Ranks: 2, Processes: [][]int{{0, 1}}}, links, 0))
}

// TestSegmentsHideIdleLevels: a tree in segments costs nearly the bytes of its
// busiest rank, not those of its height.
func TestSegmentsHideIdleLevels(t *testing.T) {
	const n, bytes = 64, 64_000_000
	links := exact()
	links.Across.Latency = 0
	cost := func(name string) float64 {
		a, err := plan.Lookup(name)
		require.NoError(t, err)
		return a.Plan(plan.AllReduce, apart(n), 0).Cost(apart(n), links, bytes).Seconds() * 1e3
	}
	// Two children queue at all but the topmost of 6 levels, up and down.
	require.InDelta(t, 2*11*64, cost("tree"), 1)
	// A tree's inner rank receives two vectors up and one down, a double tree's
	// two in all; a tenth more for filling the pipeline, and some for messages
	// that are not sent in the order in which they are awaited.
	require.InDelta(t, 3*64, cost("tree/128"), 0.3*3*64)
	require.InDelta(t, 2*64, cost("double-tree/128"), 0.3*2*64)
}

// TestTrafficOfTwoPairs: hierarchical moves a third of the interleaved ring's
// bytes across and two thirds of the contiguous ring's.
func TestTrafficOfTwoPairs(t *testing.T) {
	const bytes = 12_000
	contiguous := plan.World{Ranks: 4, Hosts: [][]int{{0, 1}, {2, 3}}}
	interleaved := plan.World{Ranks: 4, Hosts: [][]int{{0, 2}, {1, 3}}}
	ring := plan.Ring(plan.AllReduce, 4, 0)
	require.Equal(t, int64(6*bytes), ring.Traffic(interleaved, bytes))
	require.Equal(t, int64(3*bytes), ring.Traffic(contiguous, bytes))
	require.Zero(t, ring.Traffic(plan.World{Ranks: 4}, bytes))
	for _, w := range []plan.World{contiguous, interleaved} {
		p := plan.Hierarchical(plan.AllReduce, w, 0)
		require.Equal(t, int64(2*bytes), p.Traffic(w, bytes))
		// And where bytes across are all that costs, it is that much faster.
		links := exact()
		links.Across.Latency = 0
		hierarchical := p.Cost(w, links, bytes*1000).Seconds()
		require.InDelta(t, 1.0/3, hierarchical/ring.Cost(interleaved, links, bytes*1000).Seconds(), 0.001)
		require.InDelta(t, 2.0/3, hierarchical/ring.Cost(contiguous, links, bytes*1000).Seconds(), 0.001)
	}
}

// TestTrafficOfFourByFour: a 4 x 4 job sends 4 aggregated gradients across hosts
// and not 16.
func TestTrafficOfFourByFour(t *testing.T) {
	const gradient = 1600
	// To a rank on a host of its own.
	w := hostsOf(17, 4)
	require.Equal(t, int64(16*gradient), plan.Naive(plan.Reduce, 17, 16).Traffic(w, gradient))
	require.Equal(t, int64(4*gradient), plan.Hierarchical(plan.Reduce, w, 16).Traffic(w, gradient))
	// To all, every rank's slice: a quarter of what direct sends.
	w = hostsOf(16, 4)
	require.Equal(t, int64(24*gradient), plan.Direct(plan.AllReduce, 16, 0).Traffic(w, gradient))
	require.Equal(t, int64(6*gradient), plan.Hierarchical(plan.AllReduce, w, 0).Traffic(w, gradient))
	// Parts cross once to each other host.
	require.Equal(t, int64(12*gradient), plan.Pairwise(plan.AllGather, 16, 0).Traffic(w, gradient))
	require.Equal(t, int64(3*gradient), plan.Hierarchical(plan.AllGather, w, 0).Traffic(w, gradient))
	require.Equal(t, int64(3*gradient), plan.Hierarchical(plan.ReduceScatter, w, 0).Traffic(w, gradient))
}

// TestTrafficOfUnequalHosts: every host sends its share of the sum, whatever its
// number of ranks.
func TestTrafficOfUnequalHosts(t *testing.T) {
	const bytes = 24_000
	w := plan.World{Ranks: 9, Hosts: [][]int{{0, 1, 2, 3}, {4, 5, 6}, {7, 8}}}
	require.Equal(t, int64(4*bytes), plan.Hierarchical(plan.AllReduce, w, 0).Traffic(w, bytes))
}

func TestWorldsThatDoNotFitPanic(t *testing.T) {
	for _, hosts := range [][][]int{{{0, 1}}, {{0, 1}, {1, 2}}, {{0, 1, 2}, {}}, {{0, 1}, {3}}} {
		w := plan.World{Ranks: 3, Hosts: hosts}
		require.Panics(t, func() { plan.Hierarchical(plan.AllReduce, w, 0) }, "%v", hosts)
		require.Panics(t, func() { plan.Ring(plan.AllReduce, 3, 0).Cost(w, plan.Links{}, 1) }, "%v", hosts)
	}
}

func TestFit(t *testing.T) {
	link := plan.Link{Latency: 20 * time.Microsecond, PerMessage: 3 * time.Microsecond, BytesPerSecond: 1e9}
	var one, many []plan.Sample
	for _, bytes := range []int{0, 1000, 100_000, 10_000_000} {
		for _, n := range []int{1, 4, 16} {
			s := plan.Sample{Messages: n, Bytes: bytes, Time: link.Latency + time.Duration(n)*(link.PerMessage+time.Duration(bytes))}
			many = append(many, s)
			if n == 1 {
				one = append(one, s)
			}
		}
	}
	near := func(want, got plan.Link) {
		t.Helper()
		// Times are rounded to nanoseconds.
		require.InDelta(t, float64(want.Latency), float64(got.Latency), 2)
		require.InDelta(t, float64(want.PerMessage), float64(got.PerMessage), 2)
		require.InEpsilon(t, want.BytesPerSecond, got.BytesPerSecond, 1e-6)
	}
	got, err := plan.Fit(many)
	require.NoError(t, err)
	near(link, got)
	// One message at a time: a third of the constant of 23 us.
	got, err = plan.Fit(one)
	require.NoError(t, err)
	near(plan.Link{Latency: 15333, PerMessage: 7667, BytesPerSecond: 1e9}, got)
	// Noise that would make a latency negative.
	got, err = plan.Fit([]plan.Sample{{1, 1000, 1 * time.Microsecond}, {1, 2000, 3 * time.Microsecond}})
	require.NoError(t, err)
	require.Zero(t, got.Latency)
	require.InEpsilon(t, 0.8e9, got.BytesPerSecond, 0.1)

	_, err = plan.Fit(nil)
	require.ErrorContains(t, err, "0 different sizes")
	_, err = plan.Fit([]plan.Sample{{1, 100, time.Second}, {1, 100, time.Second}})
	require.ErrorContains(t, err, "1 different sizes")
	_, err = plan.Fit([]plan.Sample{{0, 100, time.Second}})
	require.ErrorContains(t, err, "sample 0")
	_, err = plan.Fit([]plan.Sample{{1, 0, time.Second}, {1, 100, time.Microsecond}})
	require.ErrorContains(t, err, "does not grow")
}

func TestChoice(t *testing.T) {
	table := "# the cheapest algorithm with default links: one host / hosts of 4 / each rank on a host of its own\n"
	for _, k := range plan.Kinds() {
		for _, ranks := range []int{1, 2, 4, 5, 8, 16, 64} {
			table += fmt.Sprintf("%v, %d ranks\n", k, ranks)
			for _, bytes := range []int{64, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20} {
				table += fmt.Sprintf("%12d B", bytes)
				for _, w := range []plan.World{{Ranks: ranks}, hostsOf(ranks, 4), apart(ranks)} {
					table += fmt.Sprintf("  %-18s", plan.Choose(k, w, bytes, plan.Links{}).Name)
				}
				table += "\n"
				if k == plan.Barrier {
					break
				}
			}
		}
	}
	golden(t, "choice.txt", table)
}

// TestLadder: what is chosen by size over links as they are measured.
func TestLadder(t *testing.T) {
	host := plan.Link{Latency: 3 * time.Microsecond, PerMessage: time.Microsecond, BytesPerSecond: 5e9}
	gigabit := plan.Links{Host: host, Across: plan.Link{Latency: 40 * time.Microsecond, PerMessage: 10 * time.Microsecond, BytesPerSecond: 117e6}}
	fast := plan.Links{Host: host, Across: plan.Link{Latency: 15 * time.Microsecond, PerMessage: 5 * time.Microsecond, BytesPerSecond: 12e9}}
	interleaved := plan.World{Ranks: 4, Hosts: [][]int{{0, 2}, {1, 3}}}
	unequal := plan.World{Ranks: 5, Hosts: [][]int{{0, 1, 2}, {3, 4}}}
	text := ""
	for _, w := range []struct {
		name string
		plan.World
	}{{"4 ranks of one process", plan.World{Ranks: 4, Processes: [][]int{{0, 1, 2, 3}}}}, {"2 x 1", apart(2)}, {"2 x 2", hostsOf(4, 2)}, {"2 x 2 interleaved", interleaved}, {"3 + 2", unequal}, {"2 x 4", hostsOf(8, 4)}, {"4 x 4", hostsOf(16, 4)}} {
		for _, links := range []struct {
			name string
			plan.Links
		}{{"default links", plan.Links{}}, {"1 Gbit/s", gigabit}, {"100 Gbit/s", fast}} {
			text += fmt.Sprintf("%s, %s\n", w.name, links.name)
			for _, k := range []plan.Kind{plan.AllReduce, plan.Broadcast, plan.AllGather, plan.ReduceScatter} {
				ladder := plan.Ladder(k, w.World, links.Links)
				again, err := plan.ParseSelection(ladder.String())
				require.NoError(t, err)
				require.Equal(t, ladder.String(), again.String())
				text += "  " + ladder.String() + "\n"
			}
		}
	}
	golden(t, "ladder.txt", text)
}

func TestLinkText(t *testing.T) {
	l := plan.Link{Latency: 42_345, PerMessage: 1_951, BytesPerSecond: 117_654_321}
	require.Equal(t, "42.345µs + 1.951µs a message + 118 MB/s", l.String())
	require.Equal(t, "42µs + 2µs a message + 120 MB/s", l.Rounded().String())
	require.Equal(t, "0s + 0s a message + 12 GB/s", plan.Link{BytesPerSecond: 12.4e9}.Rounded().String())
	require.Zero(t, plan.Link{}.Rounded())
}

// TestChoiceIsTheCheapest: no algorithm of the list undercuts what is chosen.
func TestChoiceIsTheCheapest(t *testing.T) {
	for _, k := range plan.Kinds() {
		for _, w := range []plan.World{{Ranks: 7}, hostsOf(12, 4), apart(6)} {
			for _, bytes := range []int{0, 1000, 1_000_000, 50_000_000} {
				vector := bytes
				switch k {
				case plan.Barrier:
					vector = 0
				case plan.AllToAll:
					vector *= 2
				}
				least := plan.Choose(k, w, bytes, plan.Links{}).Plan(k, w, 0).Cost(w, plan.Links{}, vector)
				for _, a := range plan.Algorithms() {
					if a.Does(k) && a.Sized == nil { // else its cost is not why it is taken
						require.LessOrEqual(t, least, a.Plan(k, w, 0).Cost(w, plan.Links{}, vector), "%v by %s on %v", k, a.Name, w)
					}
				}
			}
		}
	}
}
