package optim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// shardedTotals adds up the nodes of both shards of a parameter, as ranks that
// hold one each do.
func shardedTotals(norms [2]*Norm, shards [2][]Segment) float64 {
	var sum CanonicalSum
	for i, n := range norms {
		for _, node := range n.Nodes(shards[i], 0, nil) {
			sum.Push(node)
		}
	}
	return sum.Total()
}

// TestLayeredShards: two optimizers with a shard each that exchange nodes make
// the bits of one that has the whole parameter.
func TestLayeredShards(t *testing.T) {
	for _, name := range []string{"lars", "lamb"} {
		whole, _ := trained(t, naive.New(), name)
		p, grad := param(t, "layer.weight", 1000, true), device.FromF32(make([]float32, 1000))
		start, gradients := draws(1000, 10)
		copy(p.Value.F32(), start)
		all := cut(p, grad, 640)
		var shards [2][]Segment
		var optimizers [2]Layered
		for i := range shards {
			o, err := New(Config{Name: name, WeightDecay: 0.01})
			require.NoError(t, err)
			shards[i], optimizers[i] = all[i:i+1], o.(Layered)
			require.NoError(t, o.Init(naive.New(), shards[i]))
		}
		norm, err := NewNorm(naive.New(), all)
		require.NoError(t, err)
		for step := 1; step <= 10; step++ {
			copy(grad.F32(), gradients[step-1])
			n, err := norm.Global(all)
			require.NoError(t, err)
			scale := ClipScale(n, 1)
			var weights, updates [2]*Norm
			for i, o := range optimizers {
				weights[i], updates[i], err = o.Norms(step, shards[i], scale)
				require.NoError(t, err)
			}
			w, u := shardedTotals(weights, shards), shardedTotals(updates, shards)
			for i, o := range optimizers {
				o.SetTotals([]float64{w}, []float64{u})
				require.NoError(t, o.Update(step, shards[i], 0.1, scale))
			}
		}
		require.Equal(t, whole.Value.F32(), p.Value.F32(), "%s, seed %d", name, seed)
	}
}

// A parameter of zeros and a gradient of zeros have no ratio.
func TestLayeredZeros(t *testing.T) {
	for _, name := range []string{"lars", "lamb"} {
		for _, c := range []struct{ w, g, want float32 }{{0, 1, -1}, {1, 0, 1}} {
			p := param(t, "w", 4, true)
			grad := device.FromF32(make([]float32, 4))
			for i := range grad.F32() {
				p.Value.F32()[i], grad.F32()[i] = c.w, c.g
			}
			o, err := New(Config{Name: name, Epsilon: 1e-30})
			require.NoError(t, err)
			require.NoError(t, o.Init(naive.New(), cut(p, grad)))
			require.NoError(t, o.Update(1, cut(p, grad), 1, 1))
			require.InDelta(t, c.want, p.Value.F32()[3], 1e-6, "%s of w %g, g %g", name, c.w, c.g) // a few roundings of numbers near 1
		}
	}
}
