package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// link is how a rank of several processes reaches the others. Trainings and
// benchmarks make it alike, so that what is measured is what is used.
type link struct {
	transport collective.Transport
	name      string             // the transport's, as collective.transport has it
	why       string             // auto did not take shared memory although all ranks are on one host
	links     plan.Links         // as measured where there are several hosts
	packed    collective.Packing // as collective.pack comes to
	meeting   *launch.Rendezvous
	busy      bool // no processor is left beside those that compute
	failed    bool // the run has; the others may never leave
}

// connect brings this process to the other ranks of a job that somebody has
// started; busy says that the ranks of this host compute on all its processors.
// Everything that fails here is the network's.
func connect(ctx context.Context, place launch.Place, c *config.Config, busy bool) (*link, error) {
	joining, cancel := context.WithTimeout(ctx, c.Collective.Timeout)
	defer cancel()
	meeting, err := launch.Connect(joining, place)
	if errors.Is(err, launch.ErrRanks) {
		return nil, &coded{err, exitUsage}
	} else if err != nil {
		return nil, &coded{err, exitNetwork}
	}
	l := &link{meeting: meeting, busy: busy}
	if err = compareWays(joining, place, meeting.Store, c); err == nil {
		err = l.join(joining, place, c)
	}
	if err == nil {
		if err = l.measure(joining, &c.Collective); err != nil {
			_ = l.transport.Close()
		}
	}
	if err != nil {
		// Others may be about to read the reason, of which they would learn no more than
		// that the store has gone.
		reading, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		_ = meeting.Close(reading)
		if exitCode(err) != exitUsage {
			err = &coded{err, exitNetwork}
		}
		return nil, err
	}
	return l, nil
}

// tcpConfig is how the settings want a rank's connections.
func tcpConfig(place launch.Place, meeting *launch.Rendezvous, c *config.Collective) tcp.Config {
	t := tcp.Config{
		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
		Store: meeting.Store, Interface: c.Interface, Ports: tcp.PortRange{First: c.Ports.Low, Last: c.Ports.High},
		ConnectTimeout: c.Timeout, Patience: c.Timeout, Retry: c.Retry, Sockets: c.SocketsPerPeer, Checksum: c.Checksum,
		Segment: int(c.Segment), Buffer: int(float64(c.BufferMB) * (1 << 20)),
	}
	if c.Interface == "" {
		t.ListenAddr = meeting.LocalAddr()
	}
	if c.TLS.Name != "off" {
		t.TLS = &tcp.TLS{Cert: c.TLS.Cert, Key: c.TLS.Key, CA: c.TLS.CA}
	}
	return t
}

// close leaves the others. What they did not live to say is told elsewhere.
func (l *link) close(ctx context.Context) error {
	closed := l.transport.Close()
	limit := 5 * time.Second
	if l.failed {
		limit = 500 * time.Millisecond
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_ = l.meeting.Close(patience) // the others may be gone, which their errors tell
	return closed
}

// groupConfig is how the settings want a rank's Comm. events may be nil.
func groupConfig(c *config.Config, links plan.Links, dev device.Device, events *observe.Recorder) collective.GroupConfig {
	return collective.GroupConfig{
		Timeout: c.Collective.Timeout, Algorithm: c.Collective.Algorithm,
		Links: links, Events: events, Reducer: dev.Kernels(),
	}
}

// separate refuses settings that want all ranks in one process.
func separate(c *config.Config, place launch.Place) error {
	if c.Collective.Transport == "inproc" && place.Size > 1 {
		return c.Errorf("collective.transport", "collective.transport: inproc has all ranks in one process, but %s has started %d processes; leave it at auto", place.Source, place.Size)
	}
	return nil
}

// leaveWithParent ends this process when the launcher that started it has gone.
func leaveWithParent(place launch.Place) {
	go func() { // ends with the process
		if errors.Is(launch.WatchParent(context.Background(), place), launch.ErrOrphan) {
			os.Exit(exitNetwork)
		}
	}()
}
