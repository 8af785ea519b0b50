package trainer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// What a checkpoint does not go with is a mistake in the configuration, and placed
// where the key was given.
func TestResumingOtherwiseIsAMistakeInTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, "train.steps=2")})
	require.NoError(t, err)
	for set, says := range map[string]string{
		"optim.name=adam":     "optim.name is adam, and checkpoint " + dir,
		"data.batch=64":       "data.batch is 64, and checkpoint",
		"train.seed=9":        "train.seed is 9, and checkpoint",
		"model.name=cnn":      "model.name is cnn, and checkpoint",
		"model.hidden=[17]":   "of another network: it has 1024 numbers for fc1.weight, this one has 1088",
		"model.hidden=[]":     "of another network",
		"model.hidden=[16,8]": "of another network",
	} {
		cfg, err := config.Load("", config.Sources{Set: []string{"model.name=mlp", "model.hidden=[16]", "data.name=digits", "data.batch=50", "optim.lr=0.05",
			"compute.threads=1", "train.steps=4", "checkpoint.dir=" + dir, set}})
		require.NoError(t, err)
		_, err = ranks(t, 2, trainer.Job{Config: cfg, Resume: true})
		var mistake *config.Error
		require.ErrorAs(t, err, &mistake, set)
		require.ErrorContains(t, mistake, says)
		require.Contains(t, mistake.At.String(), "-set "+mistake.Key)
		require.ErrorContains(t, mistake, "start afresh in another checkpoint.dir")
	}
}

// A program's frozen parameters have no state of an optimizer, which resuming is
// not to miss.
func TestResumingWithFrozenParameters(t *testing.T) {
	dir := t.TempDir()
	run := func(resume bool, set ...string) string {
		m, err := models.New(models.Config{Name: "mlp", Channels: 1, Height: 8, Width: 8, Classes: 10, Hidden: []int{16}})
		require.NoError(t, err)
		for _, p := range nn.Params(m.Blocks[:1]) {
			p.Frozen = true
		}
		out, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, append(set, "optim.name=adam", "optim.schedule.name=constant")...), Model: m, Resume: resume})
		require.NoError(t, err)
		return out.StateSHA256
	}
	whole := run(false, "train.steps=4")
	run(false, "train.steps=2", "checkpoint.dir="+dir)
	require.Equal(t, whole, run(true, "train.steps=4", "checkpoint.dir="+dir))
}

// Ranks of a cut model read their own parts of the file where they see it, and
// else get them from rank 0: to the same bits, whoever of them has it.
func TestRanksWithoutTheCheckpoint(t *testing.T) {
	common := []string{"data.name=digits", "data.batch=16", "train.micro_batch=4", "train.deterministic=world", "train.eval_every=never", "optim.name=adam", "optim.lr=0.01",
		"model.name=mlp", "model.hidden=[24, 24]", "checkpoint.every=2 steps", "optim.schedule.name=constant", "optim.schedule.warmup=0"}
	configure := func(dir string, set ...string) *config.Config {
		cfg, err := config.Load("", config.Sources{Set: append(append([]string{"checkpoint.dir=" + dir}, common...), set...)})
		require.NoError(t, err)
		return cfg
	}
	for _, cut := range []string{"parallel.pipeline=2", "parallel.tensor=2"} {
		whole, err := ranks(t, 4, trainer.Job{Config: configure(t.TempDir(), "train.steps=4", cut)})
		require.NoError(t, err)
		for _, copied := range []string{"everywhere", "nowhere", "on some, and another on the rest"} {
			dir := t.TempDir()
			_, err := ranks(t, 4, trainer.Job{Config: configure(dir, "train.steps=2", cut)})
			require.NoError(t, err)
			saved, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(t, err)
			require.Len(t, saved, 1)
			text, err := os.ReadFile(saved[0])
			require.NoError(t, err)

			var g errgroup.Group
			hashes := make([]string, 4)
			for _, tr := range inproc.New(4) {
				own := dir
				if rank := tr.Rank(); rank > 0 {
					own = t.TempDir()
					if copied == "everywhere" || copied != "nowhere" && rank == 1 {
						require.NoError(t, os.WriteFile(filepath.Join(own, filepath.Base(saved[0])), text, 0o644))
					} else if copied != "nowhere" { // of the same name
						_, err := trainer.Run(t.Context(), trainer.Job{Config: configure(own, "train.steps=2", "train.seed=7")})
						require.NoError(t, err)
					}
				}
				cfg := configure(own, "train.steps=4", cut)
				g.Go(func() error {
					comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
					out, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, Comm: comm, Resume: true})
					if err == nil {
						hashes[tr.Rank()] = out.StateSHA256
					}
					return errors.Join(err, comm.Close(), tr.Close())
				})
			}
			require.NoError(t, g.Wait())
			for rank, hash := range hashes {
				require.Equal(t, whole.StateSHA256, hash, "%s, %s, rank %d", cut, copied, rank)
			}
		}
	}
}
