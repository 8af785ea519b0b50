package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// treeSum is the canonical tree as its definition says: it splits at the
// largest power of two below the count.
func treeSum(leaves []float64) float64 {
	if len(leaves) == 0 {
		return 0
	}
	if len(leaves) == 1 {
		return leaves[0]
	}
	half := 1
	for half*2 < len(leaves) {
		half *= 2
	}
	return treeSum(leaves[:half]) + treeSum(leaves[half:])
}

func TestCanonicalSumIsTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range 140 {
		leaves := make([]float64, n)
		for i := range leaves {
			leaves[i] = r.NormFloat64()
		}
		var c CanonicalSum
		for _, v := range leaves {
			c.Add(v)
		}
		require.Equal(t, treeSum(leaves), c.Total(), "%d leaves, seed %d", n, seed)
	}
}

func TestCanonicalSumOfShards(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 2))
	for range 300 {
		leaves := make([]float64, 1+r.IntN(200))
		for i := range leaves {
			leaves[i] = r.NormFloat64()
		}
		var nodes []Node
		for lo := 0; lo < len(leaves); {
			hi := lo + 1 + r.IntN(len(leaves)-lo)
			var shard CanonicalSum
			shard.Start(lo)
			for _, v := range leaves[lo:hi] {
				shard.Add(v)
			}
			nodes = shard.Nodes(nodes)
			lo = hi
		}
		var whole CanonicalSum
		for _, n := range nodes {
			whole.Push(n)
		}
		require.Equal(t, treeSum(leaves), whole.Total(), "%d leaves, seed %d", len(leaves), seed)
	}
}

func TestCanonicalSumRefusesGaps(t *testing.T) {
	var c CanonicalSum
	c.Add(1)
	require.PanicsWithValue(t, "optim: a node of the leaves [2, 4) pushed, the next leaf is 1", func() {
		c.Push(Node{Level: 1, Index: 1})
	})
}

func TestGlobalNormIsExact(t *testing.T) {
	// Squares of small integers add exactly in float64: 3*300 + 16*200 = 4100.
	a, b := param(t, "a", 300, true), param(t, "b", 200, true)
	grads := device.FromF32(make([]float32, 500))
	for i := range grads.F32() {
		grads.F32()[i] = 4
		if i < 300 {
			grads.F32()[i] = float32([]int{1, 2, -2}[i%3])
		}
	}
	segments := append(cut(b, grads.Slice(300, 500)), cut(a, grads.Slice(0, 300), 128)...)
	n, err := NewNorm(naive.New(), segments)
	require.NoError(t, err)
	got, err := n.Global(segments)
	require.NoError(t, err)
	require.Equal(t, math.Sqrt(4100), got)
}

func TestNormNodesOfShardsGiveGlobal(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 3))
	p := param(t, "w", 128*21+5, true)
	grad := device.FromF32(make([]float32, p.Len()))
	for i := range grad.F32() {
		grad.F32()[i] = float32(r.NormFloat64())
	}
	whole := cut(p, grad)
	n, err := NewNorm(naive.New(), whole)
	require.NoError(t, err)
	want, err := n.Global(whole)
	require.NoError(t, err)

	shards := cut(p, grad, 128*5, 128*6, 128*13)
	n, err = NewNorm(naive.New(), shards)
	require.NoError(t, err)
	require.NoError(t, n.Blocks(shards))
	var sum CanonicalSum
	for i := range shards {
		for _, node := range n.Nodes(shards, i, nil) {
			sum.Push(node)
		}
	}
	require.Equal(t, want, math.Sqrt(sum.Total()), "seed %d", seed)
}

func TestGlobalNormNeedsWholeParameters(t *testing.T) {
	p := param(t, "w", 300, true)
	s := cut(p, device.FromF32(make([]float32, 300)), 128)[1:]
	n, err := NewNorm(naive.New(), s)
	require.NoError(t, err)
	require.PanicsWithValue(t, "optim: norm of w: elements below 128 are missing", func() { _, _ = n.Global(s) })
}

func TestClipScale(t *testing.T) {
	require.Equal(t, float32(1), ClipScale(100, 0))
	require.Equal(t, float32(1), ClipScale(1, 2))
	require.Equal(t, float32(0.5/(2+1e-6)), ClipScale(2, 0.5))
	require.Equal(t, float32(0), ClipScale(math.Inf(1), 1))
	require.True(t, math.IsNaN(float64(ClipScale(math.NaN(), 1))))
}
