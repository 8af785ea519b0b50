package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/mixed"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// join connects a rank to the others as collective.transport says. auto
// finds out which ranks are on one host and takes shared memory inside hosts, TCP
// across, and both where there is both; a rank table keeps its servers apart.
// Ranks of one host that cannot share memory, which they find out together, are
// connected over TCP as well.
func (l *link) join(ctx context.Context, place launch.Place, c *config.Config) error {
	hosts, machine, err := tabled(c, place)
	if err != nil {
		return err
	}
	switch c.Collective.Transport {
	case "tcp":
		return l.joinTCP(ctx, place, c, hosts)
	case "shm":
		return l.joinMemory(ctx, place, c)
	}
	hosts, err = mixed.Hosts(ctx, mixed.Config{TCP: tcpConfig(place, l.meeting, &c.Collective), Machine: machine})
	switch {
	case err != nil:
		return err
	case len(hosts) == place.Size:
		if place.LocalSize == place.Size {
			l.why = "no two ranks can connect to each other by a local socket"
			hosts = nil // which they share says the kernel
		}
		return l.joinTCP(ctx, place, c, hosts)
	case len(hosts) > 1:
		return l.joinBoth(ctx, place, c, hosts)
	}
	err = l.joinMemory(ctx, place, c)
	if errors.Is(err, shm.ErrUnavailable) {
		l.why = err.Error()
		err = l.joinTCP(ctx, place, c, hosts)
	}
	return err
}

func (l *link) joinMemory(ctx context.Context, place launch.Place, c *config.Config) error {
	t, err := shm.Join(ctx, shm.Config{
		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
		Store: l.meeting.Store, ConnectTimeout: c.Collective.Timeout,
	})
	if err != nil {
		return err
	}
	l.transport, l.name = t, "shm"
	return nil
}

func (l *link) joinTCP(ctx context.Context, place launch.Place, c *config.Config, hosts [][]int) error {
	settings := tcpConfig(place, l.meeting, &c.Collective)
	settings.Hosts, settings.Busy = hosts, l.busy
	t, err := tcp.Join(ctx, settings)
	if err != nil {
		return err
	}
	l.transport, l.name = t, "tcp"
	return nil
}

func (l *link) joinBoth(ctx context.Context, place launch.Place, c *config.Config, hosts [][]int) error {
	settings := tcpConfig(place, l.meeting, &c.Collective)
	settings.Busy = l.busy
	t, err := mixed.Join(ctx, mixed.Config{TCP: settings}, hosts)
	if err != nil {
		return err
	}
	if t.Why() != nil {
		l.why = t.Why().Error()
	}
	l.transport, l.name = t, "shm+tcp"
	return nil
}

// explain has rank 0 say why auto did not take what one would expect, and what
// it makes of several hosts.
func (l *link) explain(out io.Writer) {
	if l.transport.Rank() != 0 {
		return
	}
	if l.why != "" {
		io.WriteString(out, wrap("train: collective.transport: auto takes tcp: "+l.why, width))
	}
	hosts := l.transport.Hosts()
	if len(hosts) < 2 {
		return
	}
	text := fmt.Sprintf("train: %d ranks on %d hosts over %s", l.transport.Size(), len(hosts), l.name)
	for _, measured := range []struct {
		where string
		plan.Link
	}{{"across", l.links.Across}, {"inside", l.links.Host}} {
		if measured.Link != (plan.Link{}) {
			text += fmt.Sprintf("; %s: %v", measured.where, measured.Link)
		}
	}
	world := plan.World{Ranks: l.transport.Size(), Hosts: hosts}
	text += fmt.Sprintf("; collective.algorithm: auto is %v", plan.Ladder(plan.AllReduce, world, l.links))
	if l.packed != collective.PackNothing {
		text += "; floats are packed"
	}
	io.WriteString(out, wrap(text, width))
}

// measure gives the choice of algorithms figures of this job's links, the same on
// all ranks, and decides on packing.
func (l *link) measure(ctx context.Context, c *config.Collective) (err error) {
	if l.links, err = collective.MeasureLinks(ctx, l.transport); err != nil {
		return err
	}
	l.packed, err = l.packing(ctx, c)
	return err
}

// packing is what collective.pack comes to. auto leaves large messages whole where they
// are striped over several sockets, as packed pieces of them go over one.
func (l *link) packing(ctx context.Context, c *config.Collective) (collective.Packing, error) {
	switch pack := c.Pack; {
	case pack == config.On && l.name == "tcp":
		return collective.PackAll, nil
	case pack == config.On:
		return collective.PackAcrossHosts, nil
	case pack == config.Off, c.SocketsPerPeer > 1:
		return collective.PackNothing, nil
	}
	pays, err := collective.PackingPays(ctx, l.transport, l.links)
	if pays {
		return collective.PackAcrossHosts, err
	}
	return collective.PackNothing, err
}
