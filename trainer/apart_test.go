package trainer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
)

// TestShardedOptimizer: two ranks hold half of the state each, what they save is
// resumed by three, or without shards, and all find one result.
func TestShardedOptimizer(t *testing.T) {
	dir := t.TempDir()
	set := []string{"train.deterministic=world", "train.micro_batch=7", "optim.name=adamw", "model.hidden=[64]", "optim.clip_norm=1", "checkpoint.dir=" + dir, "checkpoint.every=10 steps"}
	want, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, set...)})
	require.NoError(t, err)
	cfg := small(t, append(set, "parallel.shard_optimizer=true")...)
	got, err := ranks(t, 2, trainer.Job{Config: cfg})
	require.NoError(t, err)
	require.Equal(t, want.StateSHA256, got.StateSHA256)
	require.Equal(t, want.GradSHA256First, got.GradSHA256First)
	require.Equal(t, *want.EvalLoss, *got.EvalLoss)
	require.Less(t, got.OptimizerMB, 0.6*want.OptimizerMB)

	stopped := make(chan struct{})
	close(stopped)
	_, err = ranks(t, 2, trainer.Job{Config: cfg, Stop: stopped})
	require.ErrorIs(t, err, trainer.ErrStopped)
	for _, n := range []int{3, 1} {
		got, err = ranks(t, n, trainer.Job{Config: cfg, Resume: true})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256, "%d ranks", n)
	}
}

// TestLocalSGD: ranks that average every eighth step send about an eighth, and
// agree at the end, which is no such step; a checkpoint between is an average too.
func TestLocalSGD(t *testing.T) {
	always, err := ranks(t, 2, trainer.Job{Config: small(t, "model.hidden=[64]")})
	require.NoError(t, err)
	local, err := ranks(t, 2, trainer.Job{Config: small(t, "model.hidden=[64]", "train.local_sgd=8", "checkpoint.dir="+t.TempDir(), "checkpoint.every=20 steps")})
	require.NoError(t, err)
	require.Equal(t, 29, local.Steps)
	// 8, 16, 20, 24 and 29, each with losses beside the parameters.
	require.InDelta(t, float64(always.BytesSent)*5/29, float64(local.BytesSent), float64(always.BytesSent)/20)
	require.Greater(t, *local.EvalAccuracy, 0.7)
}

// TestShardedGrids: a model that is cut in stages or layers has shards too, and
// layer-wise rates and clipping find the norms of the whole.
func TestShardedGrids(t *testing.T) {
	for _, optimizer := range []string{"adamw", "lamb", "lars"} {
		set := []string{"model.hidden=[24,20,16]", "optim.name=" + optimizer, "optim.clip_norm=0.5", "train.steps=6", "train.micro_batch=5"}
		world := append(set, "train.deterministic=world")
		want, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, world...)})
		require.NoError(t, err)
		got, err := ranks(t, 4, trainer.Job{Config: small(t, append(world, "parallel.pipeline=2", "parallel.shard_optimizer=true")...)})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256, optimizer)
		require.Equal(t, want.GradSHA256First, got.GradSHA256First, optimizer)

		tensor := append(set, "parallel.tensor=2")
		whole, err := ranks(t, 4, trainer.Job{Config: small(t, tensor...)})
		require.NoError(t, err)
		shards, err := ranks(t, 4, trainer.Job{Config: small(t, append(tensor, "parallel.shard_optimizer=true")...)})
		require.NoError(t, err)
		require.Equal(t, whole.StateSHA256, shards.StateSHA256, optimizer)
		// Partners add products of layers in another order, which six steps do not
		// let grow far; a norm of a part only would show in the first digits.
		require.InDelta(t, *want.LossLast, *whole.LossLast, 1e-5, optimizer)
	}
}

// What ranks saved that train apart, each with a momentum of its own, they
// continue to the same bits.
func TestLocalSGDContinues(t *testing.T) {
	for _, optimizer := range []string{"momentum", "adamw"} {
		dir := t.TempDir()
		set := []string{"optim.name=" + optimizer, "train.local_sgd=2", "train.steps=7", "checkpoint.every=3 steps", "checkpoint.dir=" + dir}
		want, err := ranks(t, 3, trainer.Job{Config: small(t, set...)})
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, "step-00000007.safetensors")))
		got, err := ranks(t, 3, trainer.Job{Config: small(t, set...), Resume: true})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256, optimizer)
		again, err := ranks(t, 3, trainer.Job{Config: small(t, set...), Resume: true})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, again.StateSHA256, optimizer)
	}
}

func TestLocalSGDWantsSamplesForEveryRank(t *testing.T) {
	_, err := ranks(t, 3, trainer.Job{Config: small(t, "train.local_sgd=4", "train.micro_batch=25")})
	require.ErrorContains(t, err, "train.local_sgd: 4 wants samples for every rank in a step, but data.batch = 50 in micro-batches of 25 are 2 for 3 ranks")
}

// A rank that diverges between averages ends the job with its own reason.
func TestLocalSGDThatDiverges(t *testing.T) {
	_, err := ranks(t, 2, trainer.Job{Config: small(t, "train.local_sgd=8", "optim.lr=1e5")})
	require.ErrorIs(t, err, trainer.ErrDiverged)
}
