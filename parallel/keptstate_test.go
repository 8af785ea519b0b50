package parallel

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// TestKeptIsRestored stops a training and goes on with what was kept: on as many
// ranks to the same bits, on others with the same total.
func TestKeptIsRestored(t *testing.T) {
	for _, format := range []string{"int8", "topk", PowerSGD} {
		tr := lossyTrial(format, 6)
		_, want := tr.everywhere(t, 2)
		saved := tr.stopped(t, 2, 3)
		for _, ranks := range []int{2, 3, 1} {
			hash, total := tr.continued(t, saved, ranks, 3)
			if ranks == 2 {
				require.Equal(t, want, hash, format)
				continue
			}
			require.NotEmpty(t, total)
			for name, sum := range total {
				require.Equal(t, columnSums(saved[name]), sum, "%s of %s on %d ranks", name, format, ranks)
			}
		}
	}
}

// stopped runs the first steps of a trial and returns what a checkpoint has:
// parameters and the optimizer's state with "whole " before their names, and what
// was kept.
func (tr trial) stopped(t *testing.T, ranks, steps int) map[string]Named {
	saved, digests := map[string]Named{}, make([]string, ranks)
	require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		g, run, err := tr.start(ctx, c)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := run(steps); err != nil {
			return err
		}
		whole, err := g.OptimizerState()
		if err != nil {
			return err
		}
		for _, s := range g.stages {
			whole = append(whole, Params(s.params)...)
		}
		keep := func(n Named) error {
			if c.Rank() == 0 {
				n.Buf = device.FromF32(slices.Clone(n.Buf.F32()))
				saved[n.Name] = n
			}
			return nil
		}
		if err := g.EachKept(ctx, keep); err != nil {
			return err
		}
		for _, n := range whole {
			if err := keep(Named{"whole " + n.Name, n.Shape, n.Buf}); err != nil {
				return err
			}
		}
		d, err := g.KeptDigests(ctx)
		digests[c.Rank()] = Hash([]Named{d})
		return err
	}))
	for r := range digests {
		require.Equal(t, digests[0], digests[r])
	}
	return saved
}

// continued runs further steps on from saved and returns the hash of the result,
// and on other numbers of ranks than 2 what all keep together before them. To ask
// for that cuts the buckets in another order than a backward pass does, so the
// result differs by rounding.
func (tr trial) continued(t *testing.T, saved map[string]Named, ranks, steps int) (hash string, total map[string][]float32) {
	hashes := make([]string, ranks)
	total = map[string][]float32{}
	require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
		g, run, err := tr.start(ctx, c)
		if err != nil {
			return err
		}
		defer g.Close()
		for _, p := range g.stages[0].params {
			copy(p.Value.F32(), saved["whole "+p.Name].Buf.F32())
		}
		g.RestoreKept(func(name string) ([]float32, error) { return saved[name].Buf.F32(), nil })
		if err := g.Restore(steps, func(param, name string, to device.Buf) error {
			copy(to.F32(), saved["whole "+StateName(param, name)].Buf.F32())
			return nil
		}); err != nil {
			return err
		}
		if ranks != 2 {
			if _, err := g.OptimizerState(); err != nil {
				return err
			}
			if err := g.EachKept(ctx, func(n Named) error {
				total[n.Name] = columnSums(n)
				return nil
			}); err != nil {
				return err
			}
		}
		if err := run(steps); err != nil {
			return err
		}
		if g.restoreKept != nil {
			return errors.New("what loads a checkpoint is still held, and the checkpoint with it")
		}
		state, err := g.OptimizerState()
		hashes[c.Rank()] = Hash(append(append(state, Params(g.stages[0].params)...), States(g.stages[0].states)...))
		return err
	}))
	for r := range hashes {
		require.Equal(t, hashes[0], hashes[r])
	}
	return hashes[0], total
}

// columnSums adds up the rows of a tensor, in float32 as a rank does that takes
// both of two.
func columnSums(n Named) []float32 {
	width := n.Shape[len(n.Shape)-1]
	out := make([]float32, width)
	for i, v := range n.Buf.F32() {
		out[i%width] += v
	}
	return out
}
