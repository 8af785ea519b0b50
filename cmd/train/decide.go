package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// decide runs the job's ranks: as one of a job that somebody has started, as
// worker processes, or all here.
func (j *job) decide() error {
	place, started, err := j.placed(j.nproc)
	if err != nil {
		return err
	}
	world := j.config.Launch.NProc.Low
	if started {
		world = place.Size
	}
	if j.config.Parallel.DryRun {
		return j.dryRun(world, place.Rank)
	}
	if started {
		return j.interruptible(func(ctx context.Context) error { return j.join(ctx, place) })
	}
	if err := j.fits(world); err != nil {
		return err
	}
	here := world == 1 || j.config.Collective.Transport == "inproc"
	if err := j.checkBinding(world, !here); err != nil {
		return err
	}
	if here {
		return j.interruptible(func(ctx context.Context) error { return j.here(ctx, world) })
	}
	return j.launch(world)
}

// dryRun says on stdout what the job would be; of ranks that others have started
// the first one does.
func (j *job) dryRun(world, rank int) error {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"-resume", j.resume}, {"-summary", j.summary != ""}} {
		if flag.given {
			return j.config.Errorf("parallel.dry_run", "parallel.dry_run trains nothing, and %s is about a training; leave one of the two away", flag.name)
		}
	}
	if err := j.fits(world); err != nil || rank != 0 {
		return err
	}
	return j.config.Blame(trainer.DryRun(trainer.Job{Config: j.config}, world, j.stdout))
}

// placed finds out whether somebody has started this process as a rank of a
// job. -nproc, where given, wins over what the environment says of one.
func (c *command) placed(nproc int) (place launch.Place, started bool, err error) {
	place, started, err = launch.FromEnvironment(lookup(c.environ))
	if nproc > 0 && (started || err != nil) {
		fmt.Fprint(c.stderr, wrap("train: -nproc "+strconv.Itoa(nproc)+" wins over what the environment says of a job ("+strings.Join(leftOver(c.environ), ", ")+")", width))
		return launch.Place{}, false, nil
	}
	if err != nil {
		return launch.Place{}, false, usage("%s", err)
	}
	return place, started, nil
}

// interruptible runs ranks of this process under the signals' rule.
func (j *job) interruptible(run func(context.Context) error) error {
	ctx, signals := watchSignals(context.Background(), func() { os.Exit(j.report(errInterrupted)) })
	defer signals.close()
	j.stop = signals.stop
	err := run(ctx)
	if context.Cause(ctx) == errInterrupted {
		return errInterrupted
	}
	return j.stopped(err)
}

// lookup finds the last value of a variable, as os.Getenv does for its own.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for i := len(environ) - 1; i >= 0; i-- {
			if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// leftOver names the variables that looked like a job.
func leftOver(environ []string) []string {
	var names []string
	get := lookup(environ)
	for _, name := range []string{"GRADFUSION_RANK", "GRADFUSION_WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID"} {
		if value := get(name); value != "" {
			names = append(names, name+"="+value)
		}
	}
	return names
}

// liveVariable tells rank 0 of launched workers that its line may be drawn.
const liveVariable = "GRADFUSION_LIVE"

// measureVariable tells launched workers that their run is one of a benchmark,
// which wants steps and no evaluation.
const measureVariable = "GRADFUSION_MEASURE"

// configVariable tells launched workers the hash of the settings that they are
// to find again when they read the configuration.
const configVariable = "GRADFUSION_CONFIG_SHA256"

// launch starts worker processes and says how they ended.
func (j *job) launch(world int) error {
	if err := j.makeRunDir(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the program cannot find itself to start workers: %w", err)
	}
	j.config.Launch.NProc = config.Span{Low: world, High: world}
	live, stdout := "", j.stdout
	if isTerminal(os.Stdout) {
		stdout = nil // handed to rank 0 itself
		if j.terminal {
			live = "1"
		}
	}
	env := []string{liveVariable + "=" + live, configVariable + "=" + j.fingerprint()}
	if j.config.Observe.AllRanks && j.runDir != "" {
		io.WriteString(j.stderr, wrap("train: observe.all_ranks: every worker logs; those other than rank 0 to their files in "+j.runDir, width))
	}
	held := &holder{out: j.stderr}
	settings := launch.Config{
		Count: world, Command: append([]string{self}, j.workerArguments()...), Env: env,
		RunDir: j.runDir, Stdout: stdout, Stderr: held, Stopped: j.halted,
	}
	if j.quiet {
		settings.Env, settings.Stdout = append(env, measureVariable+"=1"), io.Discard
	}
	code, err := launch.Run(context.Background(), settings)
	err = j.ended(code, err, held.rest())
	j.tidy(err)
	return err
}

// fingerprint is the hash of all settings.
func (j *job) fingerprint() string {
	return fmt.Sprintf("%x", sha256.Sum256(j.config.YAML()))
}

// workerArguments repeat the command line, but for -nproc and with the run
// directory that was made.
func (j *job) workerArguments() []string {
	args := []string{"run", "-config", j.options.config}
	for _, assignment := range j.set {
		args = append(args, "-set", assignment)
	}
	args = append(args, "-set", "observe.run_dir="+j.runDir, "-set", "launch.nproc="+j.config.Launch.NProc.String())
	if j.summary != "" {
		args = append(args, "-summary", j.summary)
	}
	if j.resume {
		args = append(args, "-resume")
	}
	return args
}
