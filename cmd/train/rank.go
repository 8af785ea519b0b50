package main

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
)

// spans is how many a rank's recorder keeps between steps.
const spans = 1 << 16

// here runs all ranks in this process, over memory.
func (j *job) here(ctx context.Context, world int) error {
	if err := j.makeRunDir(); err != nil {
		return err
	}
	transports := inproc.New(world)
	errs := make([]error, world)
	var summary *metrics.Summary
	group, ctx := errgroup.WithContext(ctx)
	for rank, transport := range transports {
		group.Go(func() error {
			s, err := j.rank(ctx, transport, world)
			errs[rank] = errors.Join(err, transport.Close())
			if rank == 0 {
				summary = s
			}
			if errors.Is(err, trainer.ErrStopped) {
				return nil // all ranks stop at the same step
			}
			return errs[rank]
		})
	}
	first := group.Wait()
	return j.result(summary, gravest(append([]error{first}, errs...)))
}

// gravest returns the error that explains the others, given in order of time as
// far as it is known: a rank that failed by itself before those that lost it.
func gravest(errs []error) error {
	var out error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if out == nil || exitCode(out) != exitFailed && exitCode(err) == exitFailed ||
			exitCode(out) == exitInterrupted && exitCode(err) != exitInterrupted {
			out = err
		}
	}
	return out
}

// rank runs one rank over a transport, of which local ranks share this host.
func (j *job) rank(ctx context.Context, transport collective.Transport, local int) (s *metrics.Summary, err error) {
	device, err := trainer.NewDevice(j.config, local)
	if err != nil {
		return nil, j.config.Blame(err)
	}
	defer device.Close()
	events := observe.NewRecorder(spans)
	comm := collective.NewGroup(transport, collective.GroupConfig{
		Timeout: j.config.Collective.Timeout, Algorithm: j.config.Collective.Algorithm,
		Events: events, Reducer: device.Kernels(),
	})
	defer func() { err = errors.Join(err, comm.Close()) }()

	var w io.Writer
	if transport.Rank() == 0 || j.config.Observe.AllRanks {
		w = j.stderr
	}
	show := newDisplay(w, j.terminal && transport.Rank() == 0, j.config.Observe.LogEvery)
	defer show.close()
	s, err = j.train(ctx, trainer.Job{
		Config: j.config, Comm: comm, Device: device, Resume: j.resume, RunDir: j.runDir,
		Events: events, Stop: j.stop, On: show.on, Started: j.started,
	})
	return s, j.config.Blame(err)
}
