package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/bench"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/configs"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// benchmark is one "train bench", as this process sees it.
type benchmark struct {
	*command
	*benchOptions
	config *config.Config

	accelerator accelerator // of ranks that communicate by Ascend devices
}

// runBench measures collectives, or how a training scales.
func (c *command) runBench(args []string) error {
	o, err := parseBench(args)
	if errors.Is(err, flag.ErrHelp) {
		return c.help([]string{"bench"})
	} else if err != nil {
		return err
	}
	b := &benchmark{command: c, benchOptions: o, accelerator: accelerator{environ: c.environ, out: c.stderr}}
	b.config, err = config.Load(o.file, config.Sources{Embedded: configs.FS, Environ: c.environ, Set: o.set})
	if err != nil {
		return err
	}
	if err := built(b.config, b.environ); err != nil {
		return err
	}
	if o.scaling != nil {
		return b.scale()
	}
	return b.decide()
}

// decide runs the ranks as trainings' are run: as one of a job that somebody
// has started, as worker processes, or all here.
func (b *benchmark) decide() error {
	place, started, err := b.placed(b.nproc)
	if err != nil {
		return err
	}
	world := b.nproc
	if world == 0 {
		world = 2
	}
	switch {
	case started:
		return b.interruptible(func(ctx context.Context) error { return b.join(ctx, place) })
	case world == 1 || b.config.Collective.Transport == "inproc":
		return b.interruptible(func(ctx context.Context) error { return b.here(ctx, world) })
	}
	return b.launch(world)
}

// interruptible runs ranks of this process until a signal comes.
func (b *benchmark) interruptible(run func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func (b *benchmark) launch(world int) error {
	if _, err := rankTable(b.config, world); err != nil {
		return err
	}
	if err := checkCertificates(b.config, world); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the program cannot find itself to start workers: %w", err)
	}
	held := &holder{out: b.stderr}
	code, err := launch.Run(context.Background(), launch.Config{
		Count: world, Command: append([]string{self, "bench"}, b.repeated...), Stderr: held,
	})
	if errors.Is(err, launch.ErrInterrupted) {
		return errInterrupted
	}
	return workersEnded(code, err, held.rest())
}

// join runs one rank of a job that somebody has started.
func (b *benchmark) join(ctx context.Context, place launch.Place) error {
	if err := separate(b.config, place); err != nil {
		return err
	}
	if _, err := rankTable(b.config, place.Size); err != nil {
		return err
	}
	if err := checkCertificates(b.config, place.Size); err != nil {
		return err
	}
	leaveWithParent(place)
	if place.Size == 1 {
		return b.here(ctx, 1)
	}
	if err := b.keepApart(place); err != nil {
		return err
	}
	link, err := connect(ctx, place, b.config, false)
	if err != nil {
		return err
	}
	if b.config.Collective.Pack != config.On {
		link.packed = collective.PackNothing // auto is for gradients, and the values here are zeros otherwise
	}
	if !b.json {
		link.explain(b.stderr)
	}
	err = b.rank(ctx, link, place)
	link.failed = err != nil
	if closed := link.close(ctx); err == nil {
		err = closed
	}
	return err
}

// here runs all ranks in this process.
func (b *benchmark) here(ctx context.Context, world int) error {
	transports, err := worldHere(b.config, world)
	if err != nil {
		return err
	}
	errs := make([]error, world)
	group, ctx := errgroup.WithContext(ctx)
	for rank, transport := range transports {
		group.Go(func() error {
			err := b.rank(ctx, &link{transport: transport, name: "inproc"}, launch.Place{LocalSize: world})
			errs[rank] = errors.Join(err, transport.Close())
			return errs[rank]
		})
	}
	first := group.Wait()
	return gravest(append([]error{first}, errs...))
}

// rank measures on one rank, in its place. Rank 0 reports.
func (b *benchmark) rank(ctx context.Context, l *link, place launch.Place) (err error) {
	defer deviceFailure(&err)
	seat := seat{transport: l.transport, here: place.Size == 0, localRank: place.LocalRank, namespace: place.Job}
	dev, err := b.accelerator.device(b.config, seat, place.LocalSize)
	if err != nil {
		return err
	}
	defer dev.Close()
	how := groupConfig(b.config, l.links, dev, nil)
	how.Packed = l.packed
	group := collective.NewGroup(l.transport, how)
	defer func() { err = errors.Join(err, group.Close()) }()
	settings := b.Config
	settings.Kernels, settings.Transport, settings.Gradients = dev.Kernels(), l.name, l.packed != collective.PackNothing
	settings.Chosen = group.AlgorithmOf
	settings.Registered = group.SharesMemory()
	// The limit is that of memory, which is what ranks of one host share.
	settings.Limit = b.Limit || !b.json && len(l.transport.Hosts()) == 1 && l.name != "tcp"
	var world collective.Comm = group
	if onAscend(b.config) {
		if l.meeting != nil {
			seat.store = l.meeting.Store
		}
		var leave func() error
		if world, leave, err = b.accelerator.join(ctx, b.config, seat, dev.Kernels(), nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, leave()) }()
		settings.Transport, settings.Chosen, settings.Registered, settings.Limit = "hccl", nil, false, false
	}
	out := newBenchReport(b, l.transport.Rank(), settings.Limit)
	if err := bench.Run(ctx, world, settings, out.add); err != nil {
		return err
	}
	if err := out.close(); err != nil {
		return err
	}
	return collective.Barrier(ctx, world) // nobody leaves before all are done
}
