//go:build linux && (amd64 || arm64)

package trainer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
)

// Ranks that share memory shard the optimizer of a large model by themselves, save and
// continue: to the bits of a rank alone, also where the job before or after is not
// sharded.
func TestShardsByItself(t *testing.T) {
	set := []string{large, "train.deterministic=world", "train.micro_batch=10", "train.steps=5", "optim.name=adamw", "optim.lr=0.001", "optim.schedule=constant", "optim.schedule.warmup=0"}
	want, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, set...)})
	require.NoError(t, err)
	for _, c := range []struct {
		ranks int
		then  string // the second job's transport
	}{{2, "shm"}, {3, "inproc"}} {
		saved := append(set, "checkpoint.dir="+t.TempDir())
		first := largeRun(t, c.ranks, "shm", false, append(saved, "train.steps=3"))
		require.InDelta(t, want.OptimizerMB/float64(c.ranks), first.OptimizerMB, 0.1*want.OptimizerMB)
		require.Equal(t, want.GradSHA256First, first.GradSHA256First)
		second := largeRun(t, 5-c.ranks, c.then, true, saved)
		require.Equal(t, want.StateSHA256, second.StateSHA256, "%+v", c)
	}
}

func largeRun(t *testing.T, ranks int, transport string, resume bool, set []string) (summary *metrics.Summary) {
	w := combination{layout: layout{ranks: ranks}, transport: transport}
	cfg := small(t, set...)
	w.world(t, func(ctx context.Context, comm collective.Comm) error {
		s, err := trainer.Run(ctx, trainer.Job{Config: cfg, Comm: comm, Resume: resume})
		if comm.Rank() == 0 {
			summary = s
		}
		return err
	})
	return summary
}
