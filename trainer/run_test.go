package trainer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// small is the configuration of quick runs; set adds to it.
func small(t *testing.T, set ...string) *config.Config {
	t.Helper()
	base := []string{"model.name=mlp", "model.hidden=[16]", "data.name=digits", "data.batch=50", "optim.lr=0.05", "train.epochs=1", "train.eval_every=never", "compute.threads=1"}
	cfg, err := config.Load("", config.Sources{Set: append(base, set...)})
	require.NoError(t, err)
	return cfg
}

// ranks runs the job on n ranks of this process and returns rank 0's summary and
// all errors.
func ranks(t *testing.T, n int, job trainer.Job) (*metrics.Summary, error) {
	t.Helper()
	var summary *metrics.Summary
	errs := make([]error, n)
	var g errgroup.Group
	for _, tr := range inproc.New(n) {
		g.Go(func() error {
			j := job
			j.Events = observe.NewRecorder(1 << 16)
			comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world", Events: j.Events})
			j.Comm = comm
			if tr.Rank() != 0 {
				j.On, j.Model = nil, nil
			}
			s, err := trainer.Run(t.Context(), j)
			if tr.Rank() == 0 {
				summary = s
			}
			errs[tr.Rank()] = errors.Join(err, comm.Close(), tr.Close())
			return errs[tr.Rank()]
		})
	}
	g.Wait() // errs has it
	return summary, errors.Join(errs...)
}

func TestOneResultForAnyWorld(t *testing.T) {
	cfg := small(t, "train.deterministic=world", "train.micro_batch=7")
	want, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
	require.NoError(t, err)
	require.Equal(t, 29, want.Steps, "1438 samples in batches of 50, the last one of 38 counts")
	require.Greater(t, *want.EvalAccuracy, 0.7)
	for _, n := range []int{2, 3, 5} {
		got, err := ranks(t, n, trainer.Job{Config: cfg})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256, "%d ranks", n)
		require.Equal(t, want.GradSHA256First, got.GradSHA256First)
		require.Equal(t, *want.EvalAccuracy, *got.EvalAccuracy, "each test sample is counted once")
		require.Equal(t, *want.EvalLoss, *got.EvalLoss)
		require.Equal(t, *want.LossLast, *got.LossLast)
	}
}

func TestDivergenceIsExplained(t *testing.T) {
	for _, n := range []int{1, 2} {
		dir := t.TempDir()
		_, err := ranks(t, n, trainer.Job{Config: small(t, "optim.lr=1e5", "checkpoint.dir="+dir, "checkpoint.every=1000 steps")})
		require.ErrorIs(t, err, trainer.ErrDiverged)
		require.ErrorContains(t, err, "optim.lr")
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files, "nothing of a diverged run is kept")
	}
}

// listen collects a job's events of one kind.
func listen(kind trainer.EventKind, into *[]string) func(trainer.Event) {
	return func(e trainer.Event) {
		if e.Kind == kind {
			*into = append(*into, e.Text)
		}
	}
}

func TestResume(t *testing.T) {
	dir := t.TempDir()
	cfg := small(t, "checkpoint.dir="+dir, "checkpoint.every=10 steps")
	want, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 3)

	t.Run("at the end", func(t *testing.T) {
		got, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, Resume: true})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256)
		require.Equal(t, want.Steps, got.Steps)
	})
	t.Run("after a damaged checkpoint", func(t *testing.T) {
		require.NoError(t, os.Truncate(files[2], 1000))
		var warned, resumed []string
		job := trainer.Job{Config: cfg, Resume: true, On: func(e trainer.Event) {
			listen(trainer.Warned, &warned)(e)
			listen(trainer.Resumed, &resumed)(e)
		}}
		got, err := trainer.Run(t.Context(), job)
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256)
		require.Equal(t, []string{files[1]}, resumed)
		require.Len(t, warned, 1)
		require.Contains(t, warned[0], files[2])
	})
	t.Run("of another run", func(t *testing.T) {
		for _, set := range []string{"data.batch=64", "train.seed=9", "optim.name=adam", "model.hidden=[17]"} {
			_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, set), Resume: true})
			require.ErrorContains(t, err, "checkpoint "+dir, set)
		}
	})
	t.Run("on two ranks", func(t *testing.T) {
		_, err := ranks(t, 2, trainer.Job{Config: small(t, "checkpoint.dir="+dir, "train.seed=9"), Resume: true})
		require.ErrorContains(t, err, "seed")
	})
	t.Run("of nothing", func(t *testing.T) {
		var warned []string
		got, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+t.TempDir()), Resume: true, On: listen(trainer.Warned, &warned)})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256)
		require.Len(t, warned, 1)
	})
}

// TestUnwritableCheckpointEndsTheRun: before it has trained for nothing.
func TestUnwritableCheckpointEndsTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	job := trainer.Job{Config: small(t, "checkpoint.dir="+file), On: func(e trainer.Event) { require.NotEqual(t, trainer.Stepped, e.Kind) }}
	_, err := trainer.Run(t.Context(), job)
	require.ErrorContains(t, err, file)
	require.ErrorAs(t, err, new(*config.Error))
}

// TestEarlierRunInTheDirectory: a run that starts afresh replaces what an
// earlier, longer one left, and is what -resume continues.
func TestEarlierRunInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, "checkpoint.every=10 steps")})
	require.NoError(t, err)
	var warned, saved []string
	short := small(t, "checkpoint.dir="+dir, "checkpoint.every=5 steps", "train.steps=15", "optim.lr=0.01")
	want, err := trainer.Run(t.Context(), trainer.Job{Config: short, On: func(e trainer.Event) {
		listen(trainer.Warned, &warned)(e)
		if e.Kind == trainer.Saved {
			saved = append(saved, fmt.Sprint(e.Step))
			require.Contains(t, e.Text, fmt.Sprintf("step-%08d", e.Step))
		}
	}})
	require.NoError(t, err)
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], "up to step 29")
	require.Equal(t, []string{"5", "10", "15"}, saved)

	warned = nil
	got, err := trainer.Run(t.Context(), trainer.Job{Config: short, Resume: true, On: listen(trainer.Warned, &warned)})
	require.NoError(t, err)
	require.Equal(t, want.StateSHA256, got.StateSHA256)
	require.Empty(t, warned)

	_, err = trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, "train.steps=15", "optim.lr=0.02", "compute.kernels=naive"), Resume: true, On: listen(trainer.Warned, &warned)})
	require.NoError(t, err)
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], "optim.lr is 0.02, was 0.01, compute.kernels is naive, was cpu(")
}

// TestRanksDiffer: a setting or a data set that is not the same on all ranks is
// told by all of them, and nothing is trained.
func TestRanksDiffer(t *testing.T) {
	for _, c := range []struct {
		set    []string
		resume bool
		says   string
	}{
		{set: []string{"optim.lr=0.06"}, says: `rank 0 has "optim.lr: 0.05", rank 1 has "optim.lr: 0.06"`},
		{set: []string{"train.seed=5"}, says: `rank 1 has "train.seed: 5"`},
		{set: []string{"optim.name=sgd"}, says: `rank 1 has "optim.name: sgd"`},
		{set: []string{"data.augment=flip"}, says: `rank 1 has "data.augment: flip"`},
		{set: []string{"data.name=synthetic", "data.height=8", "data.width=8", "data.channels=1"}, says: `rank 0 has "data.name: digits"`},
		{set: []string{"observe.trace=true"}, says: `rank 1 has "observe.trace: true"`},
		{set: []string{"compute.kernels=naive"}, says: `rank 1 has "compute.kernels: naive"; set compute.kernels to what`},
		{set: []string{"compute.conv=winograd2"}, says: `rank 1 has "compute.conv: winograd2"`},
		{set: []string{"launch.placement=rank-order"}, says: `rank 1 has "launch.placement: rank-order"`},
		{resume: true, says: `rank 1 has "-resume: true"`},
	} {
		configs := []*config.Config{small(t), small(t, c.set...)}
		errs := make([]error, 2)
		var g errgroup.Group
		for _, tr := range inproc.New(2) {
			g.Go(func() error {
				comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
				_, errs[tr.Rank()] = trainer.Run(t.Context(), trainer.Job{Config: configs[tr.Rank()], Comm: comm, Resume: c.resume && tr.Rank() == 1})
				return errors.Join(comm.Close(), tr.Close())
			})
		}
		require.NoError(t, g.Wait())
		for _, err := range errs {
			require.ErrorContains(t, err, c.says)
			require.ErrorAs(t, err, new(*config.Error))
		}
	}
}

// TestRankZeroKnowsTheReason: the others only say that it failed.
func TestRankZeroKnowsTheReason(t *testing.T) {
	dir := t.TempDir()
	_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir)})
	require.NoError(t, err)
	errs := make([]error, 2)
	var g errgroup.Group
	for _, tr := range inproc.New(2) {
		g.Go(func() error {
			comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
			_, errs[tr.Rank()] = trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, "train.seed=9"), Comm: comm, Resume: true})
			return errors.Join(comm.Close(), tr.Close())
		})
	}
	require.NoError(t, g.Wait())
	require.ErrorContains(t, errs[0], "seed")
	require.ErrorIs(t, errs[1], trainer.ErrElsewhere)
}

func TestNetworkBeyondMemory(t *testing.T) {
	_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "model.hidden=[2000000000, 2000000000]")})
	require.ErrorAs(t, err, new(*config.Error))
	require.ErrorContains(t, err, "GiB")
}

// TestSingleValuesAreWarnedOfOnce: BatchNorm over one value has no variance.
func TestSingleValuesAreWarnedOfOnce(t *testing.T) {
	cfg, err := config.Load("", config.Sources{Set: []string{"model.name=resnet20", "data.name=synthetic", "data.height=4", "data.width=4",
		"data.batch=2", "train.micro_batch=1", "train.steps=3", "train.eval_every=never", "data.test_samples=1"}})
	require.NoError(t, err)
	var warned []string
	_, err = trainer.Run(t.Context(), trainer.Job{Config: cfg, On: listen(trainer.Warned, &warned)})
	require.NoError(t, err)
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], "one value per channel")
}

func TestRunDirectory(t *testing.T) {
	dir := t.TempDir()
	got, err := ranks(t, 2, trainer.Job{Config: small(t, "fusion.first_mb=0.001"), RunDir: dir})
	require.NoError(t, err)
	require.NotNil(t, got.OverlapPct)
	require.Positive(t, got.BytesSent)
	require.Positive(t, got.PeakRSSMB)
	require.Positive(t, got.ActivationsMB)

	file, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	steps := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		steps++
		var line struct {
			Step int
			Loss float64
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.Equal(t, steps, line.Step)
		require.Positive(t, line.Loss)
	}
	require.Equal(t, got.Steps, steps)
}

func TestCancelledRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	job := trainer.Job{Config: small(t), On: func(e trainer.Event) {
		if e.Step == 3 {
			cancel()
		}
	}}
	_, err := trainer.Run(ctx, job)
	require.ErrorIs(t, err, context.Canceled)
}
