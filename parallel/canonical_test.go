package parallel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// treeText is the dumb twin: the canonical tree over leaves [0, n) as text,
// from its definition.
func treeText(n int) string {
	var full func(lo, size int) string
	full = func(lo, size int) string {
		if size == 1 {
			return fmt.Sprint(lo)
		}
		return "(" + full(lo, size/2) + "+" + full(lo+size/2, size/2) + ")"
	}
	var parts []string
	for lo, size := 0, 1<<20; size > 0; size /= 2 {
		if lo+size <= n {
			parts = append(parts, full(lo, size))
			lo += size
		}
	}
	text := parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0; i-- {
		text = "(" + parts[i] + "+" + text + ")"
	}
	return text
}

func TestTreeOfSeven(t *testing.T) {
	require.Equal(t, "(((0+1)+(2+3))+((4+5)+6))", treeText(7))
}

// leafValues gives every leaf values whose sums round, so that the bits of a
// sum show the order of additions.
func leafValues(r *rand.Rand, leaves, n int) [][]float32 {
	out := make([][]float32, leaves)
	for i := range out {
		out[i] = make([]float32, n)
		for k := range out[i] {
			out[i][k] = float32(r.NormFloat64()) * float32(int(1)<<r.IntN(20))
		}
	}
	return out
}

func sumByTree(leaves [][]float32, lo, size int) []float32 {
	if size == 1 {
		return leaves[lo]
	}
	a, b := sumByTree(leaves, lo, size/2), sumByTree(leaves, lo+size/2, size/2)
	out := make([]float32, len(a))
	for i := range out {
		out[i] = a[i] + b[i]
	}
	return out
}

// naiveSum is the sum over the canonical tree by recursion.
func naiveSum(leaves [][]float32) []float32 {
	var parts [][]float32
	for lo, size := 0, 1<<20; size > 0; size /= 2 {
		if lo+size <= len(leaves) {
			parts = append(parts, sumByTree(leaves, lo, size))
			lo += size
		}
	}
	sum := parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0; i-- {
		next := make([]float32, len(sum))
		for k := range next {
			next[k] = parts[i][k] + sum[k]
		}
		sum = next
	}
	return sum
}

// TestCounterEqualsTree deals the leaves to any number of ranks, folds each
// run and then the nodes, and finds the bits of the recursive sum.
func TestCounterEqualsTree(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for leaves := 1; leaves <= 40; leaves++ {
		values := leafValues(r, leaves, 3)
		want := naiveSum(values)
		for ranks := 1; ranks <= leaves+1; ranks++ {
			require.Equalf(t, want, dealtSum(t, values, ranks), "%d leaves over %d ranks, seed %d", leaves, ranks, seed)
		}
	}
}

func dealtSum(t *testing.T, values [][]float32, ranks int) []float32 {
	var whole counter
	for p := range ranks {
		lo, hi := data.Run(len(values), ranks, p)
		var own counter
		for i := lo; i < hi; i++ {
			own.push(node{i, 1, device.FromF32(append([]float32(nil), values[i]...))}, nil)
		}
		require.Len(t, own.nodes, countNodes(lo, hi))
		at := 0
		nodesOf(lo, hi, func(lo, size int) {
			require.Equal(t, [2]int{lo, size}, [2]int{own.nodes[at].lo, own.nodes[at].size})
			at++
		})
		for _, n := range own.nodes {
			whole.push(n, nil)
		}
	}
	return whole.finish(nil).F32()
}

func TestCounterFreesAllButTheSum(t *testing.T) {
	var c counter
	freed := 0
	for i := range 13 {
		c.push(node{i, 1, device.FromF32(make([]float32, 1))}, func(device.Buf) { freed++ })
	}
	c.finish(func(device.Buf) { freed++ })
	require.Equal(t, 12, freed)
	require.Empty(t, c.nodes)
	require.True(t, c.finish(nil).IsZero())
}

func TestCutBuckets(t *testing.T) {
	param := func(name string, n int) *nn.Param { return &nn.Param{Name: name, Shape: []int{n}} }
	params := []*nn.Param{param("a", 1), param("b", 200), param("c", 128), param("d", 1000), param("e", 5)}
	for _, c := range []struct {
		name         string
		first, bytes int
		want         [][]int // offsets by bucket
		sizes        []int
	}{
		{"one each", 1, 1, [][]int{{0}, {0}, {0}, {0}, {0}}, []int{128, 256, 128, 1024, 128}},
		{"all in one", 1 << 20, 1 << 20, [][]int{{0, 128, 384, 512, 1536}}, []int{1664}},
		{"small first", 512, 1 << 20, [][]int{{0}, {0, 256, 384, 1408}}, []int{128, 1536}},
		{"first no larger than the others", 1 << 20, 2048, [][]int{{0, 128, 384}, {0}, {0}}, []int{512, 1024, 128}},
	} {
		t.Run(c.name, func(t *testing.T) {
			buckets := cutBuckets(params, c.first, c.bytes)
			require.Len(t, buckets, len(c.want))
			for i, b := range buckets {
				require.Equal(t, c.sizes[i], b.size)
				for k, e := range b.entries {
					require.Equal(t, c.want[i][k], e.offset)
					require.Zero(t, e.offset%device.NormBlock)
				}
			}
		})
	}
	require.Equal(t, "bucket 0 [a, b, c, 2 more]", cutBuckets(params, 1<<20, 1<<20)[0].label)
	require.Empty(t, cutBuckets(nil, 1, 1))
}
