package trainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Where all ranks take part in a checkpoint, one that is to save none is found
// before the training.
func TestRanksThatSaveTogetherAgree(t *testing.T) {
	for _, set := range []string{"parallel.pipeline=2", "parallel.shard_optimizer=true", "train.local_sgd=2", "fusion.wire=int8", ""} {
		fields := strings.Fields(set)
		configs := []*config.Config{small(t, append(fields, "checkpoint.dir="+t.TempDir())...), small(t, fields...)}
		errs := make([]error, 2)
		var all errgroup.Group
		for rank, tr := range inproc.New(2) {
			all.Go(func() error {
				comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
				_, errs[rank] = trainer.Run(t.Context(), trainer.Job{Config: configs[rank], Comm: comm})
				return errors.Join(comm.Close(), tr.Close())
			})
		}
		require.NoError(t, all.Wait())
		for rank, err := range errs {
			if set == "" {
				require.NoError(t, err, "rank %d", rank)
				continue
			}
			require.ErrorContains(t, err, `rank 0 has "checkpoint.dir: set true", rank 1 has "checkpoint.dir: set false"`, "%s, rank %d", set, rank)
		}
	}
}
