package parallel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// Ranks that start with something else learn which is the first thing, on which
// rank, and what each has.
func TestRanksThatDifferAtTheStartAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		build  func(rank int) []nn.Layer
		change func(rank int, params []*nn.Param, c *FusionConfig)
		want   string
	}{
		"shape": {build: func(rank int) []nn.Layer { return []nn.Layer{linear("a", 4, 6), linear("b", 6, 4+rank/2)} },
			want: "rank 0 has parameter b.weight of shape [4 6] and type f32 where rank 2 has parameter b.weight of shape [5 6] and type f32"},
		"order": {build: func(rank int) []nn.Layer {
			if rank == 1 {
				return []nn.Layer{linear("b", 4, 4), linear("a", 4, 4)}
			}
			return []nn.Layer{linear("a", 4, 4), linear("b", 4, 4)}
		}, want: "rank 0 has parameter a.weight of shape [4 4] and type f32 where rank 1 has parameter b.weight of shape [4 4] and type f32"},
		"more": {build: func(rank int) []nn.Layer {
			if rank == 2 {
				return []nn.Layer{linear("a", 4, 4), linear("b", 4, 4)}
			}
			return []nn.Layer{linear("a", 4, 4)}
		}, want: "rank 0 has no more parameters and buffers where rank 2 has parameter b.weight of shape [4 4] and type f32"},
		"type": {change: func(rank int, params []*nn.Param, _ *FusionConfig) {
			if rank == 1 {
				params[1].Value = device.FromI32(make([]int32, 4))
			}
		}, want: "rank 0 has parameter a.bias of shape [4] and type f32 where rank 1 has parameter a.bias of shape [4] and type i32"},
		"frozen": {change: func(rank int, params []*nn.Param, _ *FusionConfig) { params[1].Frozen = rank == 2 },
			want: "rank 0 has parameter a.bias of shape [4] and type f32 where rank 2 has parameter a.bias of shape [4] and type f32, frozen"},
		"setting": {change: func(rank int, _ []*nn.Param, c *FusionConfig) { c.ThresholdMB = float64(1 + rank) },
			want: "rank 0 has bytes of a bucket = 1048576 where rank 1 has bytes of a bucket = 2097152"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := make([]error, 3)
			require.NoError(t, world(t.Context(), 3, func(ctx context.Context, comm collective.Comm) error {
				layers, rank := []nn.Layer{linear("a", 4, 4)}, comm.Rank()
				if c.build != nil {
					layers = c.build(rank)
				}
				blocks, cfg := []nn.Block{nn.NewSeq("block", layers...)}, FusionConfig{Device: naive.New()}
				if err := nn.Materialize(cfg.Device, blocks, 1); err != nil {
					return err
				}
				if c.change != nil {
					c.change(rank, nn.Params(blocks), &cfg)
				}
				opt, _ := optim.New(optim.Config{})
				_, errs[rank] = NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt, cfg)
				return nil
			}))
			for rank, err := range errs {
				require.ErrorIs(t, err, ErrDiffer, "rank %d", rank)
				require.ErrorContains(t, err, c.want, "rank %d", rank)
				require.Equal(t, errs[0].Error(), err.Error())
			}
		})
	}
}

// Masters that are no float32, or have no memory, are refused on one rank as on
// several.
func TestMastersThatCannotBeTrainedAreRefused(t *testing.T) {
	for want, change := range map[string]func(p *nn.Param){
		"a.bias is of type f64, but masters are f32":   func(p *nn.Param) { p.Value = device.FromF64(make([]float64, 4)) },
		"a.bias has no memory of its 4 elements: call": func(p *nn.Param) { p.Value = device.Buf{} },
	} {
		for _, n := range []int{1, 2} {
			errs := make([]error, n)
			require.NoError(t, world(t.Context(), n, func(ctx context.Context, comm collective.Comm) error {
				blocks, dev := []nn.Block{nn.NewSeq("block", linear("a", 4, 4))}, naive.New()
				if err := nn.Materialize(dev, blocks, 1); err != nil {
					return err
				}
				change(nn.Params(blocks)[1])
				opt, _ := optim.New(optim.Config{})
				_, errs[comm.Rank()] = NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt, FusionConfig{Device: dev})
				return nil
			}))
			for _, err := range errs {
				require.ErrorContains(t, err, want)
			}
		}
	}
}
