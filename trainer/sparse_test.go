package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Sparse gradients of an embedding train to the same bits on any number of
// ranks, with pipelines, shards and lazy updates too.
func TestSparseEmbeddingOnAnyWorld(t *testing.T) {
	for _, set := range [][]string{nil, {"optim.lazy=true"}} {
		cfg := written(t, append([]string{"model.sparse_embedding=true", "train.deterministic=world", "train.micro_batch=3", "train.epochs=1"}, set...)...)
		want, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
		require.NoError(t, err)
		for n, more := range map[int]string{2: "parallel.shard_optimizer=true", 3: "fusion.threshold_mb=0.001", 4: "parallel.pipeline=2"} {
			cfg := written(t, append([]string{"model.sparse_embedding=true", "train.deterministic=world", "train.micro_batch=3", "train.epochs=1", more}, set...)...)
			got, err := ranks(t, n, trainer.Job{Config: cfg})
			require.NoError(t, err)
			require.Equal(t, want.GradSHA256First, got.GradSHA256First, more)
			require.Equal(t, want.StateSHA256, got.StateSHA256, more)
		}
	}
}

func load(t *testing.T, set ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load("", config.Sources{Set: set})
	require.NoError(t, err)
	return cfg
}

// Of a large vocabulary a step sends the rows of its tokens.
func TestSparseEmbeddingSendsLess(t *testing.T) {
	sent := func(sparse string) int64 {
		cfg := load(t, "model.name=gpt", "model.layers=1", "model.heads=2", "model.width=16", "model.context=12", "model.sparse_embedding="+sparse,
			"data.name=synthetic-text", "data.vocabulary=2000", "data.train_samples=60", "data.test_samples=10", "data.batch=4", "train.steps=2",
			"train.eval_every=never", "compute.threads=1")
		out, err := ranks(t, 2, trainer.Job{Config: cfg})
		require.NoError(t, err)
		return out.BytesSent
	}
	// The dense one is tied, and so has one table of 2000 x 16 less to send.
	dense, sparse := sent("false"), sent("true")
	require.Less(t, sparse, dense*5/4)
}

// With one micro-batch a rank BatchNorms normalise over the whole batch.
func TestSyncBatchNormIsOneBatch(t *testing.T) {
	set := []string{"model.name=resnet20", "data.name=digits", "data.batch=50", "train.eval_every=never", "compute.threads=1", "model.stages=[1]", "model.base_channels=4", "train.steps=2"}
	want, err := trainer.Run(t.Context(), trainer.Job{Config: load(t, set...)})
	require.NoError(t, err)
	for _, n := range []int{2, 3} {
		got, err := ranks(t, n, trainer.Job{Config: load(t, append(set, "parallel.sync_batchnorm=true")...)})
		require.NoError(t, err)
		require.InDelta(t, *want.LossFirst, *got.LossFirst, 1e-6)
		require.InDelta(t, *want.LossLast, *got.LossLast, 1e-4)
		apart, err := ranks(t, n, trainer.Job{Config: load(t, set...)})
		require.NoError(t, err)
		require.NotEqual(t, *want.LossFirst, *apart.LossFirst)
	}
}
