package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/store"
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
	j.makeRoom(world, world)
	transports, err := worldHere(j.config, world)
	if err != nil {
		return err
	}
	j.table = store.NewLocal()
	errs := make([]error, world)
	var summary *metrics.Summary
	group, ctx := errgroup.WithContext(ctx)
	for rank, transport := range transports {
		group.Go(func() error {
			transport := j.inject(transport, nil)
			s, err := j.caught(ctx, transport, world)
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
	err = gravest(append([]error{first}, errs...))
	j.tidy(err)
	return j.result(summary, err)
}

// besides is how many goroutines run beside those that compute.
const besides = 2

// makeRoom lets communication and data go on while that many ranks of this
// process compute on all their threads, of the ranks of this host. Who sets
// GOMAXPROCS knows better.
func (j *job) makeRoom(ranks, local int) {
	spare := besides
	if runtime.NumCPU() == 1 { // more of them would only take turns on it
		spare = 1
	}
	room := ranks*trainer.Threads(j.config, local) + spare
	if lookup(j.environ)("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < room {
		runtime.GOMAXPROCS(room)
	}
}

// caught is rank with a panic as its error, for ranks on goroutines of their own,
// whose panics command.run does not see.
func (j *job) caught(ctx context.Context, transport collective.Transport, local int) (s *metrics.Summary, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &bug{what: fmt.Sprint(r)}
		}
	}()
	return j.rank(ctx, transport, local)
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
	defer deviceFailure(&err)
	seat := seat{transport: transport, here: local == transport.Size() && j.place.Size == 0, localRank: j.place.LocalRank, namespace: j.place.Job}
	device, err := j.accelerator.device(j.config, seat, local)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	events := observe.NewRecorder(spans)
	show, err := j.display(transport.Rank())
	if err != nil {
		return nil, err
	}
	defer show.close()
	settings := groupConfig(j.config, j.links, device, events)
	settings.Packed = j.packed
	fence := func(error) {}
	if j.table != nil {
		m, err := j.watch(ctx, transport, show, events)
		if err != nil {
			return nil, &coded{err, exitNetwork}
		}
		defer m.Close() // the others may be gone, which their errors tell
		settings.Monitor, seat.monitor, fence = m, m, func(err error) {
			if errors.As(err, new(*collective.PeerError)) {
				m.Fence() // before this rank waits for the others to part
			}
		}
	}
	var world collective.Comm
	if onAscend(j.config) {
		if j.table != nil {
			seat.store = j.table
		}
		var leave func() error
		err = j.early(ctx, func(ctx context.Context) (err error) {
			world, leave, err = j.accelerator.join(ctx, j.config, seat, device.Kernels(), events)
			return err
		})
		if err != nil {
			fence(err)
			return nil, err
		}
		defer func() { err = errors.Join(err, leave()) }()
	} else {
		world = collective.NewGroup(transport, settings)
		defer func() { err = errors.Join(err, world.Close()) }()
	}

	s, err = j.train(ctx, trainer.Job{
		Config: j.config, Comm: world, Device: device, Resume: j.resume, RunDir: j.runDir,
		Events: events, Stop: j.stop, On: j.withoutRoom(show.on, world.Size()), Cut: j.keepStageApart, Started: j.started,
		NoEvaluation: lookup(j.environ)(measureVariable) != "",
	})
	fence(err)
	return s, j.config.Blame(err)
}

// display decides where a rank shows what happens: on the terminal or stderr,
// and in its own file of the run directory.
func (j *job) display(rank int) (*display, error) {
	c := displayConfig{every: j.config.Observe.LogEvery}
	launched := j.place.Source == byLauncher // stderr is filed, rank 0's shown too
	switch {
	case rank == 0 && launched && lookup(j.environ)(liveVariable) != "":
		c.live = os.Stdout
	case rank == 0 && !launched && j.terminal:
		c.live = j.stderr
	case rank == 0 || launched || j.config.Observe.AllRanks:
		c.lines = append(c.lines, j.stderr)
	}
	if j.runDir != "" && (!launched || c.live != nil) {
		file, err := os.OpenFile(filepath.Join(j.runDir, fmt.Sprintf("rank-%d.log", rank)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("the rank's log cannot be written: %w", err)
		}
		c.lines = append(c.lines, file)
		c.closers = append(c.closers, file)
	}
	return newDisplay(c), nil
}
