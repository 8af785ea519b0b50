package trainer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// large is a model of which auto shards the optimizer where ranks share memory.
const large = "model.hidden=[1024,1024]"

// Where all ranks take part in a checkpoint, one that is to save none is found
// before the training.
func TestRanksThatSaveTogetherAgree(t *testing.T) {
	for _, c := range []struct {
		set, transport string
		together       bool
	}{
		{"parallel.pipeline=2", "inproc", true}, {"parallel.shard_optimizer=true", "inproc", true}, {"train.local_sgd=2", "inproc", true}, {"fusion.wire=int8", "inproc", true},
		{"", "inproc", false}, {"", "shm", false}, {large, "inproc", false}, {large, "shm", true}, {large + " parallel.shard_optimizer=false", "shm", false},
	} {
		if !slices.Contains(transportNames(), c.transport) {
			continue
		}
		fields := append(strings.Fields(c.set), "train.steps=2")
		configs := []*config.Config{small(t, append(fields, "checkpoint.dir="+t.TempDir())...), small(t, fields...)}
		errs := make([]error, 2)
		var all errgroup.Group
		for rank, tr := range (combination{layout: layout{ranks: 2}, transport: c.transport}).transports(t) {
			all.Go(func() error {
				comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
				_, errs[rank] = trainer.Run(t.Context(), trainer.Job{Config: configs[rank], Comm: comm})
				return errors.Join(comm.Close(), tr.Close())
			})
		}
		require.NoError(t, all.Wait())
		for rank, err := range errs {
			if !c.together {
				require.NoError(t, err, "%+v, rank %d", c, rank)
				continue
			}
			require.ErrorContains(t, err, `rank 0 has "checkpoint.dir: set true", rank 1 has "checkpoint.dir: set false"`, "%+v, rank %d", c, rank)
		}
	}
}
