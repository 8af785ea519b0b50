package parallel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func named(times ...float64) (out []BlockCost) {
	for i, t := range times {
		out = append(out, BlockCost{Name: string(rune('a' + i)), Forward: t, Backward: 2 * t, Parameters: 100, Activations: 10 * (i + 1), Output: 7})
	}
	return out
}

func TestBalance(t *testing.T) {
	p, err := Balance(named(1, 1, 1, 1, 1, 1), single(3))
	require.NoError(t, err)
	require.Equal(t, []int{2, 4}, p.Cuts)
	p, err = Balance(named(9, 1, 1, 1, 1, 5), single(3))
	require.NoError(t, err)
	require.Equal(t, []int{1, 4}, p.Cuts, "the first block is slowest however the rest is cut, so memory decides")
	require.Equal(t, 3, p.Stages())
	require.Equal(t, BlockCost{"b to d", 3, 6, 300, 90, 7}, p.Cost(1))
	require.Equal(t, 6.0, p.ScheduleCosts().Stages[2].Weight)
	p, err = Balance(named(1, 2, 3), single(1))
	require.NoError(t, err)
	require.Empty(t, p.Cuts)
	_, err = Balance(named(1, 2, 3), single(4))
	require.EqualError(t, err, "4 stages cannot be made of 3 blocks: each has at least one\n0:a 1:b 2:c\n")
}

// Of cuts that are equally fast the one that needs least memory is taken.
func TestBalanceLooksAtMemory(t *testing.T) {
	costs := named(1, 0, 0, 1)
	costs[1].Activations, costs[2].Activations = 1000, 1000
	p, err := Balance(costs, single(2))
	require.NoError(t, err)
	require.Equal(t, []int{2}, p.Cuts)
	p, err = Balance(costs, []StageLoad{{Rank: 0, Held: 3}, {Rank: 1, Held: 1}})
	require.NoError(t, err)
	require.Equal(t, []int{1}, p.Cuts, "the first stage holds three micro-batches, the last one")
}

// The dumb twin tries all cuts.
func TestPartitionIsTheBestOfAll(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		n := 1 + r.IntN(8)
		stages := 1 + r.IntN(n)
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(r.IntN(20))
		}
		cost := func(stage, lo, hi int) float64 {
			sum := 0.0
			for _, v := range values[lo:hi] {
				sum += v
			}
			return sum * float64(1+stage%2)
		}
		worst := func(cuts []int) float64 {
			out, lo := 0.0, 0
			for stage, hi := range append(append([]int{}, cuts...), n) {
				out = max(out, cost(stage, lo, hi))
				lo = hi
			}
			return out
		}
		best := math.Inf(1)
		var try func(cuts []int, from int)
		try = func(cuts []int, from int) {
			if len(cuts) == stages-1 {
				best = min(best, worst(cuts))
				return
			}
			for at := from; at < n; at++ {
				try(append(cuts, at), at+1)
			}
		}
		try(nil, 1)
		got, cuts := partition(n, stages, cost)
		require.Equal(t, best, got, "seed %d", seed)
		require.Equal(t, best, worst(cuts), "seed %d", seed)
	}
}

func TestCutsThatLeaveAStageEmpty(t *testing.T) {
	costs := named(1, 1, 1, 1)
	p, err := NewPipeline(costs, []int{1, 3})
	require.NoError(t, err)
	lo, hi := p.Blocks(1)
	require.Equal(t, [2]int{1, 3}, [2]int{lo, hi})
	require.Equal(t, "0:a | 1:b 2:c | 3:d\n", p.Picture())
	for _, c := range []struct {
		cuts []int
		want string
	}{
		{[]int{0}, "cut 1 is before block 0, which leaves stage 0 without a block\n| 0:a 1:b 2:c 3:d\n"},
		{[]int{2, 2}, "cut 2 is before block 2, which leaves stage 1 without a block\n0:a 1:b | | 2:c 3:d\n"},
		{[]int{3, 1}, "cut 2 is before block 1, which leaves stage 1 without a block\n0:a | 1:b 2:c | 3:d\n"},
		{[]int{2, 4}, "cut 2 is before block 4, but the model has the blocks 0 to 3\n0:a 1:b | 2:c 3:d |\n"},
	} {
		_, err := NewPipeline(costs, c.cuts)
		require.EqualError(t, err, c.want)
	}
}

func TestCostsRoundTrip(t *testing.T) {
	costs := named(1.5, 0.25, 1e-3)
	var text bytes.Buffer
	require.NoError(t, WriteCosts(&text, costs))
	got, err := ReadCosts(&text)
	require.NoError(t, err)
	require.Equal(t, costs, got)
	for in, want := range map[string]string{
		"":      "costs: the file is empty",
		"a,b\n": "costs: record on line 1: wrong number of fields",
		"block,forward,backward,parameter_bytes,activation_bytes,bytes\n":                      "costs: the first line is",
		"block,forward,backward,parameter_bytes,activation_bytes,output_bytes\na,1,x,1,1,1\n":  `costs: line 2, column 5: backward "x" is no time`,
		"block,forward,backward,parameter_bytes,activation_bytes,output_bytes\na,1,2,1,-1,1\n": `costs: line 2, column 9: activation_bytes "-1" is no number of bytes`,
	} {
		_, err := ReadCosts(strings.NewReader(in))
		require.ErrorContains(t, err, want)
	}
}

func FuzzReadCosts(f *testing.F) {
	f.Add("block,forward,backward,parameter_bytes,activation_bytes,output_bytes\nstem,1,2,3,4,5\n")
	f.Fuzz(func(t *testing.T, text string) {
		costs, err := ReadCosts(strings.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, WriteCosts(&out, costs))
		again, err := ReadCosts(&out)
		require.NoError(t, err)
		require.Len(t, again, len(costs))
	})
}
