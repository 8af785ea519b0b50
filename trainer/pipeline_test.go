package trainer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Every schedule leaves what one process does, with as many micro-batches as one
// or as ranks; package parallel tries more of them.
func TestPipelinesAreEqualToOneProcess(t *testing.T) {
	for model, micro := range map[string]int{"mlp": 24, "cnn": 3, "gpt": 8} {
		c := combination{model: model, optimizer: "momentum", batch: 24, micro: micro, clip: 0.5, augment: "none", level: "O0", tensor: 1, sparse: "none",
			layout: layout{ranks: 1, pipeline: 1}, transport: "inproc", threshold: 1, threads: 1, overlap: true, recompute: "none"}
		want := c.run(t)
		for _, name := range schedule.Names() {
			per, err := schedule.StagesPerRank(name, 2)
			require.NoError(t, err)
			for _, pipeline := range []int{2, 3} {
				if pipeline*per > blocks(model) {
					continue
				}
				c.layout = layout{pipeline, pipeline, name}
				t.Run(fmt.Sprintf("%s %s pp%d micro %d", model, name, pipeline, micro), func(t *testing.T) {
					got := c.run(t)
					require.Equal(t, want.StateSHA256, got.StateSHA256)
					require.Equal(t, want.ParamsSHA256, got.ParamsSHA256)
					require.Equal(t, want.GradSHA256First, got.GradSHA256First)
					require.Equal(t, want.LossLast, got.LossLast)
					require.Equal(t, want.EvalLoss, got.EvalLoss)
					require.Equal(t, want.EvalAccuracy, got.EvalAccuracy)
					require.Equal(t, pipeline, got.Pipeline)
					require.Equal(t, 1, got.DataParallel)
					require.Equal(t, want.Params, got.Params)
				})
			}
		}
	}
}

// What one layout saves another continues, to the same bits.
func TestAnyLayoutContinues(t *testing.T) {
	c := combination{model: "resnet20", optimizer: "adam", batch: 24, micro: 4, clip: 0.5, augment: "flip", level: "O0", tensor: 1, sparse: "none",
		layout: layout{ranks: 1, pipeline: 1}, transport: "inproc", threshold: 1, threads: 1, overlap: true, recompute: "none"}
	want := c.run(t).StateSHA256
	c.stopAfter = 2
	layouts := []layout{{4, 4, "1f1b"}, {4, 2, "zb-v"}, {4, 2, "interleaved"}, {1, 1, ""}, {3, 3, "zb-h1"}}
	for i, from := range layouts {
		c.layout, c.then = from, layouts[(i+1)%len(layouts)]
		require.Equal(t, want, c.run(t).StateSHA256, "from %+v to %+v", c.layout, c.then)
	}
}

// A schedule from a file runs steps that are shorter than it, and evaluations that
// are longer; what one run has measured cuts another.
func TestScheduleAndCostsOfAUser(t *testing.T) {
	c := combination{model: "mlp", optimizer: "momentum", batch: 24, micro: 8, augment: "none", level: "O0", tensor: 1, sparse: "none",
		layout: layout{ranks: 1, pipeline: 1}, transport: "inproc", threshold: 1, threads: 1, overlap: true, recompute: "none"}
	want := c.run(t)
	file := filepath.Join(t.TempDir(), "mine.csv")
	require.NoError(t, os.WriteFile(file, []byte("\ufeff# two at a time\n0F0,0F1,,0B0,0B1,0F2,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,,1F2,1B2,1F3,1B3\n"), 0o644))
	for _, ranks := range []int{2, 4} {
		c.layout = layout{ranks, 2, file}
		got := c.run(t)
		require.Equal(t, want.StateSHA256, got.StateSHA256)
		require.Equal(t, want.EvalLoss, got.EvalLoss)
	}

	dir := t.TempDir()
	set := []string{"data.name=digits", "data.batch=16", "model.name=mlp", "model.hidden=[8, 8]", "train.steps=2", "train.micro_batch=4", "parallel.pipeline=2"}
	cfg, err := config.Load("", config.Sources{Set: set})
	require.NoError(t, err)
	ran, err := ranks(t, 2, trainer.Job{Config: cfg, RunDir: dir})
	require.NoError(t, err)
	require.Positive(t, *ran.StepMsPredicted)
	measured := filepath.Join(dir, "blocks.csv")
	first, err := os.ReadFile(measured)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(measured, append([]byte("\ufeff"), first...), 0o644)) // as a spreadsheet saves it
	cfg, err = config.Load("", config.Sources{Set: append(set, "parallel.cuts="+measured)})
	require.NoError(t, err)
	dir = t.TempDir()
	ran, err = ranks(t, 2, trainer.Job{Config: cfg, RunDir: dir})
	require.NoError(t, err)
	require.Positive(t, *ran.StepMsPredicted, "it is this run's times that count, whatever the file has")
	again, err := os.ReadFile(filepath.Join(dir, "blocks.csv"))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
}

// Stages that recompute change no bit, and hold less under 1F1B.
func TestRecomputePerStage(t *testing.T) {
	run := func(pipeline int, set ...string) (*metrics.Summary, error) {
		cfg, err := config.Load("", config.Sources{Set: append([]string{"data.name=digits", "data.batch=16", "model.name=resnet20", "train.steps=2", "train.micro_batch=4",
			"train.deterministic=world", "train.eval_every=never", fmt.Sprint("parallel.pipeline=", pipeline)}, set...)})
		require.NoError(t, err)
		return ranks(t, pipeline, trainer.Job{Config: cfg})
	}
	one, err := run(1)
	require.NoError(t, err)
	for name, cuts := range map[string]string{"1f1b": "[5]", "zb-v": "[3, 5, 7]"} {
		all, err := run(2, "parallel.schedule="+name, "parallel.cuts="+cuts)
		require.NoError(t, err)
		some, err := run(2, "parallel.schedule="+name, "parallel.cuts="+cuts, "parallel.recompute=[0]")
		require.NoError(t, err)
		require.Equal(t, one.StateSHA256, all.StateSHA256, name)
		require.Equal(t, one.StateSHA256, some.StateSHA256, name)
		if name == "1f1b" { // halves of a backward pass keep what the first makes again
			require.Less(t, some.ActivationsMB, all.ActivationsMB)
		}
	}
	_, err = run(2, "parallel.recompute=[0, 2]")
	require.ErrorContains(t, err, "parallel.recompute names stage 2; parallel.pipeline: 2 with parallel.schedule: 1f1b has the stages 0 to 1")
}
