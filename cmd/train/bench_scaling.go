package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/gradfusion/gradfusion/bench"
	"github.com/gradfusion/gradfusion/observe/metrics"
)

const (
	scalingSteps  = 10 // measured ones of a run
	scalingWarmup = 3  // the trainer's own warm-up, which counts for no figure
	scalingRuns   = 3
)

// scale measures how the training of the configuration scales. Every rank has
// what it has in the configuration's own job: its share of the batch, and as
// many threads as it gets at the largest number of ranks.
func (b *benchmark) scale() error {
	own := b.config.Launch.NProc.Low
	if b.config.Data.Batch%own != 0 {
		return b.config.Errorf("data.batch", "data.batch: %d samples are no equal share for each of launch.nproc: %d, which -scaling keeps constant", b.config.Data.Batch, own)
	}
	if b.config.Collective.Transport == "inproc" {
		return b.config.Errorf("collective.transport", "collective.transport: -scaling starts a process for each rank; leave it at auto")
	}
	if b.Iterations == 0 {
		b.Iterations = scalingSteps
	}
	if b.runs == 0 {
		b.runs = scalingRuns
	}
	folder, err := os.MkdirTemp("", "gradfusion-scaling-")
	if err != nil {
		return fmt.Errorf("summaries of the runs: %w", err)
	}
	defer os.RemoveAll(folder)
	threads := b.config.Compute.Threads.Or(max(runtime.NumCPU()/slices.Max(b.scaling), 1))
	all, err := bench.Scale(context.Background(), bench.Scaling{
		Ranks: b.scaling, Runs: b.runs, Threads: threads,
		Train: func(_ context.Context, ranks, run int) (bench.Trained, error) {
			if !b.json || b.terminal {
				fmt.Fprintf(b.stderr, "scaling: run %d of %d, ranks: %d\n", run, b.runs, ranks)
			}
			return b.train(filepath.Join(folder, "summary.json"), ranks, b.config.Data.Batch/own*ranks, threads)
		},
	})
	if err != nil {
		return err
	}
	if b.json {
		return bench.WriteScalingJSON(b.stdout, all)
	}
	return bench.WriteScaling(b.stdout, b.config.Model.Name, all, runtime.NumCPU())
}

// train runs the training once, without evaluation or checkpoint.
func (b *benchmark) train(summary string, ranks, batch, threads int) (bench.Trained, error) {
	quiet := *b.command
	quiet.stdout, quiet.stderr, quiet.terminal = io.Discard, io.Discard, false
	j := &job{command: &quiet, quiet: true, options: options{
		config: b.file, nproc: ranks, summary: summary,
		set: append(slices.Clone(b.set),
			"data.batch="+strconv.Itoa(batch), "compute.threads="+strconv.Itoa(threads),
			"train.steps="+strconv.Itoa(b.Iterations+scalingWarmup), "train.eval_every=never", "checkpoint.dir=", "observe.run_dir=",
			"observe.trace=false", "observe.tensorboard=false"),
	}}
	if err := b.trainWith(j); err != nil {
		if exitCode(err) == exitInterrupted {
			err = errInterrupted
		}
		return bench.Trained{}, err
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return bench.Trained{}, fmt.Errorf("the run's summary: %w", err)
	}
	var s metrics.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return bench.Trained{}, fmt.Errorf("the run's summary: %w", err)
	}
	return bench.Trained{Batch: batch, Steps: b.Iterations, SamplesPerSec: s.SamplesPerSec, StepMs: s.StepMsP50, ExposedMs: s.CommExposedMs, OverlapPct: s.OverlapPct}, nil
}

// trainWith runs a job in worker processes of its own, also a single one.
func (b *benchmark) trainWith(j *job) (err error) {
	if j.config, err = j.load(); err != nil {
		return err
	}
	if err := j.fits(j.nproc); err != nil {
		return err
	}
	return j.launch(j.nproc)
}
