package commtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// testSimulation compares every algorithm of every operation with the plan's
// simulation to the bit, on random floats, which tell orders of addition apart.
func testSimulation(t *testing.T, connect Connect) {
	for _, n := range rankCounts(1, 2, 3, 4, 5, 6, 7, 8) {
		shared := newVectors(n, 0)
		groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			for _, a := range plan.Algorithms() {
				for _, k := range a.Kinds {
					lengths := []int{5*n + 3}
					if n == 3 {
						lengths = append(lengths, 60_011) // large messages
					}
					for _, length := range lengths {
						if err := simulate(ctx, g, a, k, length, shared); err != nil {
							return fmt.Errorf("%v of %d by %s on %d ranks: %w", k, length, a.Name, n, err)
						}
					}
				}
			}
			return nil
		})
	}
}

// simulate runs one call and compares it with its plan's simulation.
func simulate(ctx context.Context, g *collective.Group, a plan.Algorithm, k plan.Kind, length int, shared *vectors) error {
	n, me, root := g.Size(), g.Rank(), length%g.Size()
	if k == plan.AllToAll || slices.Contains(a.Relays, k) {
		length -= length % n
	}
	p := a.For(k, plan.World{Ranks: n, Hosts: g.Hosts()}, root, length*device.F32.Size())
	parts, bounds := plan.Cut(length, n), plan.Cut(length, p.Chunks)
	total, first := length, 0
	switch {
	case k == plan.Barrier:
		return collective.Barrier(ctx, g)
	case k.Parts():
		bounds = chunksOfParts(parts, p.Chunks/n)
	case k == plan.AllToAll: // what is sent, what is received, and scratch
		total, first = length/n*p.Chunks, length
		bounds = plan.Cut(total, p.Chunks)
	}
	inputs, wants, err := shared.oracle(fmt.Sprintf("%v of %d by %s", k, length, a.Name), func() (inputs, wants [][]float32, err error) {
		cuts := make([][]int, n)
		for r := range n {
			rng := rand.New(rand.NewPCG(uint64(r), uint64(length)))
			v := make([]float32, total)
			for i := range v {
				v[i] = float32(rng.NormFloat64())
			}
			cuts[r], inputs, wants = bounds, append(inputs, v), append(wants, slices.Clone(v))
		}
		return inputs, wants, plan.Simulate(p, wants, cuts, addFloats)
	})
	if err != nil {
		return err
	}
	whole, want := slices.Clone(inputs[me]), wants[me]
	isRoot := me == root || !k.Rooted()
	c := collective.Call{Kind: k, Root: root, Algorithm: a.Name}
	own := func(v []float32) device.Buf { return device.FromF32(v[parts[me]:parts[me+1]]) }
	c.In, c.Out = device.FromF32(whole[:length]), device.FromF32(make([]float32, length))
	switch k {
	case plan.AllToAll:
		want = want[first : first+length]
	case plan.AllGather, plan.Gather:
		c.In = own(whole)
		if !isRoot {
			c.Out, want = device.Buf{}, nil
		}
	case plan.ReduceScatter, plan.Scatter:
		c.Out, want = own(make([]float32, length)), own(want).F32()
		if !isRoot {
			c.In = device.Buf{}
		}
	case plan.Reduce:
		if !isRoot {
			want = nil
		}
	}
	before := clone(c.In)
	if err := g.Start(ctx, c).Wait(ctx); err != nil {
		return err
	}
	switch {
	case want != nil && !bytes.Equal(c.Out.Bytes(), device.FromF32(want).Bytes()):
		return fmt.Errorf("rank %d differs from the simulation", me)
	case !bytes.Equal(c.In.Bytes(), before.Bytes()):
		return fmt.Errorf("rank %d: the input was changed", me)
	}
	return nil
}

// chunksOfParts cuts every part in k.
func chunksOfParts(parts []int, k int) []int {
	bounds := []int{0}
	for r := range len(parts) - 1 {
		for _, b := range plan.Cut(parts[r+1]-parts[r], k)[1:] {
			bounds = append(bounds, parts[r]+b)
		}
	}
	return bounds
}

func addFloats(dst, src []float32) {
	for i := range dst {
		dst[i] += src[i]
	}
}
