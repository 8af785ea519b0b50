package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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

func TestEveryAlgorithmIsProved(t *testing.T) {
	var sizes []int
	for n := 1; n <= 130; n++ {
		sizes = append(sizes, n)
	}
	sizes = append(sizes, 256)
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			t.Run(fmt.Sprintf("%s %v", a.Name, k), func(t *testing.T) {
				for _, n := range sizes {
					for _, root := range roots(k, n) {
						require.NoError(t, a.Plan(k, n, root).Check(k, root), "root %d of %d", root, n)
					}
				}
			})
		}
	}
}

func TestLargeWorldsAreProved(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			require.NoError(t, a.Plan(k, 1024, 0).Check(k, 0), "%s %v", a.Name, k)
		}
	}
	require.NoError(t, plan.Ring(plan.AllReduce, 1000, 0).Check(plan.AllReduce, 0))
}

func TestRingOnFourRanksTakesSixRounds(t *testing.T) {
	rounds, moves := plan.Ring(plan.AllReduce, 4, 0).Count()
	require.Equal(t, 6, rounds)
	require.Equal(t, 24, moves)
}

func TestGoldenPlans(t *testing.T) {
	for _, a := range plan.Algorithms() {
		text := ""
		for _, k := range a.Kinds {
			root := 0
			if k.Rooted() {
				root = 1
			}
			text += fmt.Sprintf("# %v by %s, root %d\n%v\n", k, a.Name, root, a.Plan(k, 4, root))
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
	require.ErrorContains(t, err, "naive ring")
}
