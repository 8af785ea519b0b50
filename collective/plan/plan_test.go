package plan_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update to write it")
	require.Equal(t, string(want), got)
}

func roots(k plan.Kind, ranks int) []int {
	if !k.Rooted() || ranks == 1 {
		return []int{0}
	}
	return []int{0, ranks - 1, ranks / 2}
}

// worlds are one host of n ranks, and for algorithms that care random hosts.
func worlds(a plan.Algorithm, n int) []plan.World {
	all := []plan.World{{Ranks: n}}
	for seed := range uint64(4) {
		if a.ByHost && n > 1 && (n < 40 || seed < 2) {
			all = append(all, randomHosts(n, seed))
		}
	}
	return all
}

// randomHosts deals n ranks to hosts of random sizes; odd seeds mix their order.
func randomHosts(n int, seed uint64) plan.World {
	rng := rand.New(rand.NewPCG(uint64(n), seed))
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	if seed%2 == 1 {
		ranks = rng.Perm(n)
	}
	w := plan.World{Ranks: n}
	largest := 1 + rng.IntN(min(n, 24))
	for len(ranks) > 0 {
		size := min(1+rng.IntN(largest), len(ranks))
		w.Hosts = append(w.Hosts, ranks[:size])
		ranks = ranks[size:]
	}
	return w
}

func TestEveryAlgorithmIsProved(t *testing.T) {
	var sizes []int
	for n := 1; n <= 130; n++ {
		sizes = append(sizes, n)
	}
	sizes = append(sizes, 256)
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			t.Run(fmt.Sprintf("%s %v", a.Name, k), func(t *testing.T) {
				t.Parallel()
				for _, n := range sizes {
					for _, w := range worlds(a, n) {
						all := roots(k, n)
						if n > 40 {
							all = all[n%len(all):][:1]
						}
						for _, root := range all {
							require.NoError(t, a.Plan(k, w, root).Check(k, root), "root %d of %v", root, w)
						}
					}
				}
			})
		}
	}
}

// hostsOf deals n ranks to hosts of size ranks each, the last one smaller.
func hostsOf(n, size int) plan.World {
	w := plan.World{Ranks: n}
	for r := 0; r < n; r += size {
		var host []int
		for i := r; i < min(r+size, n); i++ {
			host = append(host, i)
		}
		w.Hosts = append(w.Hosts, host)
	}
	return w
}

// bytesOf is a large vector, where the operation has one.
func bytesOf(k plan.Kind) int {
	if k == plan.Barrier {
		return 0
	}
	return 64 << 20
}

// TestLargeWorlds: 1024 ranks are checked and costed in under two seconds each,
// on a machine to itself; the test leaves room for a busy one.
func TestLargeWorlds(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			for _, n := range []int{1000, 1024} {
				if n == 1000 && k != plan.AllReduce {
					continue
				}
				w := hostsOf(n, 8)
				p := a.Plan(k, w, n-1)
				start := time.Now()
				require.NoError(t, p.Check(k, n-1), "%s %v", a.Name, k)
				checked := time.Since(start)
				cost := p.Cost(w, plan.Links{}, bytesOf(k))
				took := time.Since(start)
				require.Positive(t, cost)
				t.Logf("%4d ranks, %-16s %-14v: checked in %4d ms, costed in %4d ms: %v", n, a.Name, k, checked.Milliseconds(), (took - checked).Milliseconds(), cost)
			}
		}
	}
}

func TestRingOnFourRanksTakesSixRounds(t *testing.T) {
	rounds, moves := plan.Ring(plan.AllReduce, 4, 0).Count()
	require.Equal(t, 6, rounds)
	require.Equal(t, 24, moves)
}

func TestGoldenPlans(t *testing.T) {
	worlds := []plan.World{{Ranks: 4, Hosts: [][]int{{0, 1}, {2, 3}}}, {Ranks: 5, Hosts: [][]int{{0, 1, 2}, {3, 4}}}}
	for _, a := range plan.Algorithms() {
		text := ""
		for _, k := range a.Kinds {
			for _, w := range worlds {
				title := fmt.Sprintf("%v by %s", k, a.Name)
				root := 0
				if k.Rooted() {
					root = 1
					title += ", root 1"
				}
				if a.ByHost {
					title += fmt.Sprintf(", hosts %v", w.Hosts)
				}
				text += fmt.Sprintf("# %s\n%v\n", title, a.Plan(k, w, root))
			}
		}
		golden(t, a.Name+".txt", text)
	}
}

func TestCut(t *testing.T) {
	require.Equal(t, []int{0, 2, 3, 4}, plan.Cut(4, 3))
	require.Equal(t, []int{0, 0, 0}, plan.Cut(0, 2))
	for n := range 40 {
		for parts := 1; parts < 12; parts++ {
			bounds := plan.Cut(n, parts)
			require.Len(t, bounds, parts+1)
			require.Equal(t, n, bounds[parts])
			for i := range parts {
				size := bounds[i+1] - bounds[i]
				require.True(t, size == n/parts || size == n/parts+1)
				require.True(t, i == 0 || size <= bounds[i]-bounds[i-1])
			}
		}
	}
}

func TestKindNames(t *testing.T) {
	for _, k := range plan.Kinds() {
		got, err := plan.ParseKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
	k, err := plan.ParseKind("reducescatter")
	require.NoError(t, err)
	require.Equal(t, plan.ReduceScatter, k)
	_, err = plan.ParseKind("allreduced")
	require.Error(t, err)
	_, err = plan.Lookup("rings")
	require.ErrorContains(t, err, "did you mean ring?")
}
