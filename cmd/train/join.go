package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/launch"
)

// runDirKey is where rank 0 publishes the run's directory.
const runDirKey = "run_dir"

// byLauncher is the source of places that our own launcher made.
const byLauncher = "launcher"

// join runs one rank of a job that somebody has started: our launcher,
// torchrun, mpirun, srun or Kubernetes.
func (j *job) join(ctx context.Context, place launch.Place) error {
	j.place = place
	if err := j.fits(place.Size); err != nil {
		return err
	}
	if j.config.Collective.Transport == "inproc" && place.Size > 1 {
		return j.config.Errorf("collective.transport", "collective.transport: inproc has all ranks in one process, but %s has started %d processes; leave it at auto", place.Source, place.Size)
	}
	go func() { // ends with the process
		if errors.Is(launch.WatchParent(context.Background(), place), launch.ErrOrphan) {
			os.Exit(exitNetwork)
		}
	}()
	if place.Size == 1 {
		return j.alone(ctx)
	}
	meeting, transport, err := j.meet(ctx, place)
	if err != nil {
		return err
	}
	summary, err := j.rank(ctx, transport, place.LocalSize)
	closed := transport.Close()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = meeting.Close(patience) // the others may be gone, which their errors tell
	if err == nil {
		err = closed
	}
	if place.Rank != 0 {
		return err
	}
	return j.result(summary, err)
}

func (j *job) alone(ctx context.Context) error {
	if err := j.makeRunDir(); err != nil {
		return err
	}
	transport := inproc.New(1)[0]
	summary, err := j.rank(ctx, transport, 1)
	return j.result(summary, errors.Join(err, transport.Close()))
}

// meet connects this rank to the others. Everything that fails here is the
// network's.
func (j *job) meet(ctx context.Context, place launch.Place) (*launch.Rendezvous, collective.Transport, error) {
	ctx, cancel := context.WithTimeout(ctx, j.config.Collective.Timeout)
	defer cancel()
	meeting, err := launch.Connect(ctx, place)
	if err != nil {
		return nil, nil, &coded{err, exitNetwork}
	}
	transport, err := tcp.Join(ctx, tcp.Config{
		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
		Store: meeting.Store, ListenAddr: meeting.LocalAddr(), ConnectTimeout: j.config.Collective.Timeout,
	})
	if err == nil {
		if err = j.agreeRunDir(ctx, place, meeting); err == nil {
			return meeting, transport, nil
		}
		transport.Close()
	}
	cancel() // nobody is worth waiting for
	_ = meeting.Close(ctx)
	if exitCode(err) == exitUsage {
		return nil, nil, err
	}
	return nil, nil, &coded{err, exitNetwork}
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
