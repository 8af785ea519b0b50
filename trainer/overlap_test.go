package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
)

// With sums beside the next forward pass a job computes the same, evaluations,
// comparisons of the ranks and checkpoints included.
func TestOverlapForwardIsTheSame(t *testing.T) {
	set := []string{"model.name=resnet20", "model.stages=[1]", "model.base_channels=4", "data.name=digits", "data.batch=12", "train.micro_batch=3", "train.steps=13",
		"train.eval_every=4 steps", "checkpoint.every=5 steps", "fusion.check_every=6", "fusion.threshold_mb=0.002", "compute.threads=1"}
	for _, more := range []string{"train.deterministic=world", "train.deterministic=off", "amp.level=O2", "fusion.wire=int8"} {
		for _, n := range []int{2, 3} {
			run := func(forward string) string {
				cfg := load(t, append(set, more, "fusion.overlap_forward="+forward, "checkpoint.dir="+t.TempDir())...)
				out, err := ranks(t, n, trainer.Job{Config: cfg})
				require.NoError(t, err)
				return out.StateSHA256
			}
			require.Equal(t, run("false"), run("true"), "%s on %d ranks", more, n)
		}
	}
}

// Buckets are small between hosts, unless their size was given.
func TestBucketsBetweenHosts(t *testing.T) {
	cfg := load(t)
	require.Equal(t, []float64{16, 2, 16}, []float64{cfg.BucketMB(1, 4), cfg.BucketMB(2, 4), cfg.BucketMB(2, 9)})
	cfg = load(t, "fusion.threshold_mb=16")
	require.Equal(t, 16.0, cfg.BucketMB(2, 4))
}

// A run again by the settings that it wrote has the same buckets.
func TestWrittenBuckets(t *testing.T) {
	require.Contains(t, string(load(t).YAML()), "  threshold_mb: auto\n")
	require.Contains(t, string(load(t, "fusion.threshold_mb=16").YAML()), "  threshold_mb: 16\n")
}
