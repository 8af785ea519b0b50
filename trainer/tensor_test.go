package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// shared is a model of which 2 and 3 ranks can share the layers.
func shared(t *testing.T, model string, tensor int, set ...string) *config.Config {
	t.Helper()
	set = append([]string{fmt.Sprint("parallel.tensor=", tensor), "model.dropout=0.1", "train.micro_batch=5", "train.epochs=1", "train.steps=6",
		"optim.schedule.name=constant", "optim.schedule.warmup=0"}, set...)
	if model == "gpt" {
		return written(t, append(set, "model.layers=2", "model.heads=3", "model.width=15")...)
	}
	return small(t, append(set, "model.hidden=[17,13]")...)
}

// Ranks that share layers train to the losses of one rank and write what it would
// write, and any other number of ranks continues from it. Sums in another order
// move a gradient by some 1e-6 of its rms, and a few steps add to that.
func TestRanksThatShareLayers(t *testing.T) {
	for _, model := range []string{"mlp", "gpt"} {
		dir := t.TempDir()
		want, err := trainer.Run(t.Context(), trainer.Job{Config: shared(t, model, 1, "checkpoint.dir="+dir, "checkpoint.every=3 steps")})
		require.NoError(t, err)
		saved := newest(t, dir)
		for _, c := range []struct{ tensor, ranks int }{{2, 2}, {3, 3}, {2, 4}} {
			text := fmt.Sprintf("%s, tensor %d of %d ranks", model, c.tensor, c.ranks)
			for _, other := range []int{1, 2, 3} {
				dir := t.TempDir()
				got, err := ranks(t, c.ranks, trainer.Job{Config: shared(t, model, c.tensor, "checkpoint.dir="+dir, "train.steps=3")})
				require.NoError(t, err, text)
				require.Equal(t, []int{c.ranks, c.ranks / c.tensor, c.tensor}, []int{got.WorldSize, got.DataParallel, got.Tensor})
				require.Equal(t, want.Params, got.Params)
				require.InEpsilon(t, *want.LossFirst, *got.LossFirst, 1e-6, text)
				got, err = ranks(t, other, trainer.Job{Config: shared(t, model, other, "checkpoint.dir="+dir), Resume: true})
				require.NoError(t, err, text)
				require.Equal(t, 6, got.Steps)
				require.InEpsilon(t, *want.LossLast, *got.LossLast, 1e-4, "%s, continued by %d", text, other)
				require.InEpsilon(t, *want.EvalLoss, *got.EvalLoss, 1e-4, "%s, continued by %d", text, other)
				requireAlike(t, saved, newest(t, dir), text)
			}
		}
	}
}

// newest reads the newest checkpoint of a directory.
func newest(t *testing.T, dir string) checkpoint.State {
	t.Helper()
	list, err := checkpoint.List(dir)
	require.NoError(t, err)
	state, err := checkpoint.Read(list[len(list)-1].Path)
	require.NoError(t, err)
	return state
}

// requireAlike compares what the tensors of two checkpoints are, not their values.
func requireAlike(t *testing.T, want, got checkpoint.State, text string) {
	t.Helper()
	require.Len(t, got.Tensors, len(want.Tensors), text)
	for i, w := range want.Tensors {
		g := got.Tensors[i]
		require.Equal(t, w.Name, g.Name, text)
		require.Equal(t, w.Shape, g.Shape, "%s: %s", text, w.Name)
	}
}

// Under deterministic: world the result depends on how many ranks share a layer,
// because partial sums are rounded, and on nothing else of the layout.
func TestDeterministicRanksThatShareLayers(t *testing.T) {
	for _, model := range []string{"mlp", "gpt"} {
		seen := map[string]int{}
		for _, tensor := range []int{1, 2, 3} {
			same := []string{"train.deterministic=world", "optim.clip_norm=0.1", "train.steps=3"}
			want, err := ranks(t, tensor, trainer.Job{Config: shared(t, model, tensor, same...)})
			require.NoError(t, err)
			seen[want.StateSHA256] = tensor
			for _, layout := range []struct {
				times int
				set   []string
			}{
				{2, nil},
				{2, []string{"parallel.pipeline=2"}},
				{4, []string{"parallel.pipeline=2", "parallel.schedule=zb-h1"}},
				{2, []string{"parallel.pipeline=2", "parallel.schedule=zb-v", "model.recompute=blocks"}},
				{3, []string{"parallel.shard_optimizer=true", "fusion.threshold_mb=0.001"}},
			} {
				if model == "mlp" && strings.Contains(fmt.Sprint(layout.set), "zb-v") {
					continue // it has three blocks
				}
				text := fmt.Sprintf("%s, tensor %d, %d times as many ranks, %v", model, tensor, layout.times, layout.set)
				got, err := ranks(t, layout.times*tensor, trainer.Job{Config: shared(t, model, tensor, append(layout.set, same...)...)})
				require.NoError(t, err, text)
				require.Equal(t, want.StateSHA256, got.StateSHA256, text)
				require.Equal(t, want.ParamsSHA256, got.ParamsSHA256, text)
				require.Equal(t, want.GradSHA256First, got.GradSHA256First, text)
				require.Equal(t, want.EvalLoss, got.EvalLoss, text)
			}
		}
		require.Len(t, seen, 3, "the rounding differs")
	}
}

// What else a job may do goes with layers that ranks share.
func TestSharedLayersWithOtherSettings(t *testing.T) {
	for _, set := range [][]string{
		{"optim.name=lars"}, {"optim.name=lamb", "parallel.shard_optimizer=true"}, {"parallel.shard_optimizer=true", "optim.clip_norm=0.05"},
		{"fusion.wire=f16"}, {"fusion.wire=bf16", "parallel.pipeline=2", "parallel.activation_wire=bf16"},
		{"amp.level=O1"}, {"amp.level=O2"}, {"amp.level=O3", "amp.type=bf16", "parallel.pipeline=2"},
		{"model.recompute=blocks", "parallel.pipeline=2", "parallel.schedule=gpipe", "fusion.find_unused=true"},
	} {
		for _, model := range []string{"mlp", "gpt"} {
			alone := slices.DeleteFunc(slices.Clone(set), func(s string) bool { return strings.HasPrefix(s, "parallel.") })
			want, err := ranks(t, 2, trainer.Job{Config: shared(t, model, 1, alone...)})
			require.NoError(t, err, "%s %v", model, set)
			got, err := ranks(t, 4, trainer.Job{Config: shared(t, model, 2, append([]string{"fusion.check_every=1"}, set...)...)})
			require.NoError(t, err, "%s %v", model, set)
			bound := 1e-4 // a few steps of other rounding
			if strings.Contains(fmt.Sprint(set), "f16") || strings.Contains(fmt.Sprint(set), "amp") {
				bound = 0.02 // of 8 or 11 bits
			}
			require.InEpsilon(t, *want.LossLast, *got.LossLast, bound, "%s %v", model, set)
			require.InEpsilon(t, *want.EvalLoss, *got.EvalLoss, bound, "%s %v", model, set)
		}
	}
}

// A rank that ends in the middle of a step ends the others, which name the layer
// and the rank that they waited for.
func TestRankThatLeavesItsPartners(t *testing.T) {
	cfg := shared(t, "gpt", 2)
	errs := make([]error, 2)
	stepped := make(chan struct{}) // rank 0 has ended step 2
	var g errgroup.Group
	for _, tr := range inproc.New(2) {
		g.Go(func() error {
			comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			job := trainer.Job{Config: cfg, Comm: comm, On: func(e trainer.Event) {
				switch {
				case e.Kind != trainer.Stepped || e.Step != 2:
				case tr.Rank() == 0:
					close(stepped)
				default:
					<-stepped // else rank 0 may hear of it in the middle of step 2
					cancel()
				}
			}}
			_, errs[tr.Rank()] = trainer.Run(ctx, job)
			return errors.Join(comm.Close(), tr.Close())
		})
	}
	require.NoError(t, g.Wait())
	require.Error(t, errs[1])
	require.ErrorContains(t, errs[0], "step 3, forward pass of micro-batch 0: transformer.wte (sum of the partners' vectors)")
	require.ErrorAs(t, errs[0], new(*collective.PeerError))
	require.Regexp(t, "(rank|peer) 1", errs[0].Error())
}

func TestLayersThatCannotBeShared(t *testing.T) {
	for _, c := range []struct {
		set   []string
		ranks int
		says  string
	}{
		{[]string{"model.name=resnet20", "parallel.tensor=2"}, 2, "parallel.tensor is 2: the layers of resnet20 cannot be cut over ranks; those of mlp and gpt can"},
		{[]string{"model.name=mlp", "model.hidden=[3]", "parallel.tensor=4"}, 4, "parallel.tensor is 4: 3 features of hidden layer 1 are too few for 4 ranks that share them"},
		{[]string{"model.name=gpt", "data.name=bible", "model.heads=2", "parallel.tensor=3"}, 3, "parallel.tensor is 3: 2 heads are too few for 3 ranks that share them"},
		{[]string{"model.name=mlp", "parallel.tensor=2", "fusion.wire=topk"}, 2, "fusion.wire"},
	} {
		_, err := config.Load("", config.Sources{Set: append([]string{"data.name=digits"}, c.set...)})
		require.ErrorContains(t, err, c.says)
		require.ErrorAs(t, err, new(*config.Error))
	}
	_, err := ranks(t, 11, trainer.Job{Config: small(t, "model.hidden=[20,20]", "parallel.tensor=11")})
	require.ErrorContains(t, err, "parallel.tensor: 10 classes are too few for 11 ranks that share them")
	require.ErrorAs(t, err, new(*config.Error))
	_, err = ranks(t, 3, trainer.Job{Config: small(t, "parallel.tensor=2")})
	require.ErrorContains(t, err, "3 ranks cannot be divided into parallel.pipeline x parallel.tensor = 1 x 2")
}
