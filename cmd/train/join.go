package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
)

// runDirKey is where rank 0 publishes the run's directory.
const runDirKey = "run_dir"

// byLauncher is the source of places that our own launcher made.
const byLauncher = "launcher"

// join runs one rank of a job that somebody has started: our launcher,
// torchrun, mpirun, srun or Kubernetes.
func (j *job) join(ctx context.Context, place launch.Place) error {
	j.place = place
	if want := lookup(j.environ)(configVariable); place.Source == byLauncher && want != "" && want != j.fingerprint() {
		return j.config.Errorf("", "the workers do not find the settings that the launcher read: either the file was changed in this moment, or it can be read only once, as a pipe can; write it to a file")
	}
	if err := j.fits(place.Size); err != nil {
		return err
	}
	if err := separate(j.config, place); err != nil {
		return err
	}
	leaveWithParent(place)
	if place.Size == 1 {
		return j.alone(ctx)
	}
	j.makeRoom(1, place.LocalSize)
	if err := j.keepApart(place); err != nil {
		return err
	}
	link, err := j.connect(ctx, place)
	if err != nil {
		return err
	}
	link.explain(j.stderr)
	link.transport = j.inject(link.transport, dieAtOnce)
	j.table, j.links = link.meeting.Store, link.links
	j.packed = link.packed
	summary, err := j.ranked(ctx, place, link)
	link.failed = err != nil
	if closed := link.close(ctx); err == nil {
		err = closed
	}
	if place.Rank != 0 {
		return err
	}
	j.tidy(err)
	return j.result(summary, err)
}

// connect links this rank to the others.
func (j *job) connect(ctx context.Context, place launch.Place) (l *link, err error) {
	computing := max(place.LocalSize, 1) * trainer.Threads(j.config, place.LocalSize)
	err = j.early(ctx, func(ctx context.Context) (err error) {
		l, err = connect(ctx, place, j.config, computing >= runtime.NumCPU())
		return err
	})
	return l, err
}

// early runs what comes before the first step, unless the first signal comes sooner: no
// step is under way that could be finished.
func (j *job) early(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-j.stop:
			cancel(trainer.ErrStopped)
		case <-ctx.Done():
		}
	})
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), trainer.ErrStopped) {
		err = trainer.ErrStopped
	}
	return err
}

func (j *job) alone(ctx context.Context) error {
	if err := j.makeRunDir(); err != nil {
		return err
	}
	j.makeRoom(1, 1)
	transport := inproc.New(1)[0]
	summary, err := j.rank(ctx, transport, 1)
	err = errors.Join(err, transport.Close())
	j.tidy(err)
	return j.result(summary, err)
}

// ranked runs this rank over its link to the others.
func (j *job) ranked(ctx context.Context, place launch.Place, link *link) (*metrics.Summary, error) {
	early, cancel := context.WithTimeout(ctx, j.config.Collective.Timeout)
	defer cancel()
	if err := j.agreeRunDir(early, place, link.meeting); err != nil {
		if exitCode(err) == exitUsage {
			return nil, err
		}
		return nil, &coded{err, exitNetwork}
	}
	return j.rank(ctx, link.transport, place.LocalSize)
}

// agreeRunDir has rank 0 make the run's directory, unless the launcher has, and
// tell the others, which may be on hosts that do not see it.
func (j *job) agreeRunDir(ctx context.Context, place launch.Place, meeting *launch.Rendezvous) error {
	if place.Source == byLauncher {
		j.runDir = j.config.Observe.RunDir
		return nil
	}
	key := filepath.Join(place.Job, runDirKey)
	if place.Rank == 0 {
		if err := j.makeRunDir(); err != nil {
			return err
		}
		return meeting.Store.Set(ctx, key, []byte(j.runDir))
	}
	name, err := meeting.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if len(name) > 0 && os.MkdirAll(string(name), 0o755) == nil {
		j.runDir = string(name)
	}
	return nil
}

// tidy removes a directory that was made for a run that a mistake in the
// configuration kept from starting.
func (j *job) tidy(err error) {
	if err != nil && exitCode(err) == exitUsage && j.ownDir {
		os.RemoveAll(j.runDir)
		os.Remove(filepath.Dir(j.runDir)) // fails, rightly, when there are other runs
	}
}
