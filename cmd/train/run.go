package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/monitor"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/configs"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// job is one training, as this process sees it.
type job struct {
	*command
	options
	config *config.Config
	place  launch.Place       // in a job that others have started
	runDir string             // "": the run leaves nothing
	ownDir bool               // runDir was made for this run
	quiet  bool               // a run of a benchmark: no evaluation, nothing shown
	stop   <-chan struct{}    // closed when the user asks to end
	table  monitor.Store      // where ranks watch each other, or nil
	links  plan.Links         // what algorithms are chosen for
	packed collective.Packing // what of its messages

	accelerator accelerator // of ranks that communicate by Ascend devices
}

// runTraining loads the configuration and decides how its ranks come to be:
// this process joins a job that others started, starts worker processes, or
// runs all ranks itself.
func (c *command) runTraining(args []string) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return c.help(nil)
	} else if err != nil {
		return err
	}
	j := &job{command: c, options: o, accelerator: accelerator{environ: c.environ, out: c.stderr}}
	if j.config, err = j.load(); err != nil {
		return err
	}
	if o.resume && j.config.Checkpoint.Dir == "" {
		return j.config.Errorf("checkpoint.dir", "-resume needs checkpoint.dir, the directory of the checkpoints to continue from; it is not set")
	}
	if j.summary != "" {
		if err := writable(j.summary); err != nil {
			return usage("-summary: %v", err)
		}
	}
	return j.decide()
}

// load reads the configuration and what overrides it.
func (j *job) load() (*config.Config, error) {
	c, err := config.Load(j.options.config, config.Sources{Embedded: configs.FS, Environ: j.environ, Set: j.set})
	if err == nil && j.nproc > 0 {
		c.Launch.NProc = config.Span{Low: j.nproc, High: j.nproc}
	}
	return c, err
}

// fits checks what depends on the number of ranks, so that a mistake is told
// once and before anything starts.
func (j *job) fits(world int) error {
	if err := built(j.config, j.environ); err != nil {
		return err
	}
	columns, err := config.Columns(j.config, world)
	if err != nil {
		return err
	}
	if _, err := config.Batches(j.config, columns); err != nil {
		return err
	}
	if _, err := rankTable(j.config, world); err != nil {
		return err
	}
	if err := checkCertificates(j.config, world); err != nil {
		return err
	}
	return trainer.Fits(j.config, world)
}

// result is what rank 0 leaves at the end: the figures as files and, in words,
// on stdout.
func (j *job) result(s *metrics.Summary, err error) error {
	if s == nil || err != nil && !errors.Is(err, trainer.ErrStopped) {
		return err
	}
	var files []string
	if j.runDir != "" {
		files = append(files, filepath.Join(j.runDir, "summary.json"))
	}
	if j.summary != "" {
		files = append(files, j.summary)
	}
	fmt.Fprint(j.stdout, describe(s, j.config.Data.Name, j.runDir))
	for _, file := range files {
		if failed := s.WriteFile(file); failed != nil {
			return errors.Join(err, fmt.Errorf("the summary cannot be written: %w", failed))
		}
	}
	return err
}

// writable finds out whether a file can be written, before a training is done
// for nothing.
func writable(file string) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", file)
		}
		return nil // a device or pipe, which is not replaced
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".summary-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// describe is a summary in a few lines.
func describe(s *metrics.Summary, set, runDir string) string {
	var b strings.Builder
	rate, unit := s.SamplesPerSec, "samples"
	if s.TokensPerSec != nil {
		rate, unit = *s.TokensPerSec, "tokens"
	}
	fmt.Fprintf(&b, "%s on %s: %s on %s, %.0f %s/s\n", s.Model, set, config.Plural(s.Steps, "step"), config.Plural(s.WorldSize, "rank"), rate, unit)
	if s.EvalAccuracy != nil && s.EvalLoss != nil {
		fmt.Fprintf(&b, "test accuracy %.4f, test loss %.4f", *s.EvalAccuracy, *s.EvalLoss)
		if s.TokensPerSec != nil {
			fmt.Fprintf(&b, ", perplexity %.4g", math.Exp(*s.EvalLoss))
		}
		b.WriteString("\n")
	}
	if s.LossFirst != nil && s.LossLast != nil {
		fmt.Fprintf(&b, "loss %.4f at the first step, %.4f at the last\n", *s.LossFirst, *s.LossLast)
	}
	if runDir != "" {
		fmt.Fprintf(&b, "figures in %s\n", runDir)
	}
	return b.String()
}

// makeRunDir makes the run's directory, with the settings as they were
// resolved in config.yaml. Workers are told the name that auto became.
func (j *job) makeRunDir() error {
	dir := j.config.Observe.RunDir
	if dir == "" {
		return nil
	}
	var err error
	if dir == "auto" {
		j.ownDir = true
		dir, err = newRunDir(filepath.Join("runs", j.started.Format("20060102-150405")+"-"+j.config.Model.Name))
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return j.config.Errorf("observe.run_dir", "observe.run_dir: the run's directory cannot be made: %v", err)
	}
	if err := metrics.Replace(filepath.Join(dir, "config.yaml"), j.resolved().YAML()); err != nil {
		if j.ownDir {
			os.Remove(dir) // it is empty
		}
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("the settings cannot be written into the run's directory %s: %w", dir, err)
		}
		return j.config.Errorf("observe.run_dir", "observe.run_dir: the settings cannot be written into %s: %v", dir, err)
	}
	j.runDir, j.config.Observe.RunDir = dir, dir
	return nil
}

// resolved is the settings with the number that auto became, where it is known before
// ranks meet: on several hosts summary.json has it.
func (j *job) resolved() *config.Config {
	settings := *j.config
	if j.place.Size == j.place.LocalSize && settings.Fusion.ThresholdMB == 0 {
		settings.Fusion.ThresholdMB = config.Megabytes(settings.BucketMB(1, 1))
	}
	return &settings
}

// newRunDir makes a directory that was not there, with a number at the end when
// another run began in the same second.
func newRunDir(name string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		dir := name
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", name, n)
		}
		if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}
