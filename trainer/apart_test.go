package trainer_test

import (
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
