package data

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunDealsContiguousEvenRuns(t *testing.T) {
	sizes := func(micros, ranks int) (out []int) {
		for r := range ranks {
			lo, hi := Run(micros, ranks, r)
			out = append(out, hi-lo)
		}
		return out
	}
	require.Equal(t, []int{2, 1, 1}, sizes(4, 3))
	require.Equal(t, []int{1, 1, 0, 0}, sizes(2, 4))
	require.Equal(t, []int{0, 0}, sizes(0, 2))
	require.Equal(t, []int{3, 3, 2, 2}, sizes(10, 4))

	for ranks := 1; ranks <= 40; ranks++ {
		for micros := 0; micros <= 100; micros++ {
			next := 0
			for r := range ranks {
				lo, hi := Run(micros, ranks, r)
				require.Equal(t, next, lo, "%d over %d, rank %d", micros, ranks, r)
				require.Contains(t, []int{micros / ranks, (micros + ranks - 1) / ranks}, hi-lo)
				next = hi
			}
			require.Equal(t, micros, next, "%d over %d", micros, ranks)
		}
	}
}

func TestEvaluationHasEachSampleOnce(t *testing.T) {
	for _, n := range []int{0, 1, 5, 31, 32, 33, 100} {
		for _, micro := range []int{1, 3, 32, 200} {
			for ranks := 1; ranks <= 7; ranks++ {
				var seen []int
				for r := range ranks {
					for p := range EvalParts(n, micro, ranks, r) {
						require.Equal(t, len(seen), p.Indices[0])
						require.Equal(t, min(micro, n-len(seen)), len(p.Indices))
						require.Equal(t, p.Micro*micro, p.Indices[0])
						require.Equal(t, n, p.Total)
						seen = append(seen, p.Indices...)
					}
				}
				require.Len(t, seen, n, fmt.Sprint(n, micro, ranks))
				for i, s := range seen {
					require.Equal(t, i, s)
				}
			}
		}
	}
}

// The parts of all ranks together are the same for any number of ranks.
func TestPartsDoNotDependOnRanks(t *testing.T) {
	const samples, batch, micro, steps = 103, 24, 7, 11
	s, err := NewSampler(samples, batch, 5)
	require.NoError(t, err)
	type key struct{ step, micro int }
	collect := func(ranks int) map[key][]int {
		out := map[key][]int{}
		for r := range ranks {
			last := map[int]bool{}
			for p := range s.Parts(0, steps, micro, ranks, r) {
				require.NotContains(t, out, key{p.Step, p.Micro})
				require.False(t, last[p.Step], "a part after the last one")
				last[p.Step] = p.Last
				require.Equal(t, s.Size(p.Step), p.Total)
				require.Equal(t, s.Epoch(p.Step), p.Epoch)
				out[key{p.Step, p.Micro}] = slices.Clone(p.Indices)
			}
			for step, ended := range last {
				require.True(t, ended, "step %d has no last part", step)
			}
		}
		return out
	}
	want := collect(1)
	var whole []int
	for step := range steps {
		for m := range Micros(s.Size(step), micro) {
			whole = append(whole, want[key{step, m}]...)
		}
	}
	var direct []int
	for step := range steps {
		direct = s.Batch(direct, step)
	}
	require.Equal(t, direct, whole)
	for ranks := 2; ranks <= 6; ranks++ {
		require.Equal(t, want, collect(ranks), "%d ranks", ranks)
	}
}

func TestPartsStartAnywhere(t *testing.T) {
	s, err := NewSampler(50, 8, 1)
	require.NoError(t, err)
	var all, resumed []string
	for p := range s.Parts(0, 20, 3, 2, 1) {
		if p.Step >= 9 {
			all = append(all, fmt.Sprint(p))
		}
	}
	for p := range s.Parts(9, 20, 3, 2, 1) {
		resumed = append(resumed, fmt.Sprint(p))
	}
	require.Equal(t, all, resumed)
}
