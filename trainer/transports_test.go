package trainer_test

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/collective/tcp"
)

var gridTransport = flag.String("grid-transport", "", "the one transport that combinations have; empty: any")

// world runs f on every rank over the combination's transport.
func (c combination) world(t *testing.T, f func(context.Context, collective.Comm) error) {
	if slices.Contains(acceleratorNames(), c.transport) {
		acceleratorWorld(t, c.ranks, f)
		return
	}
	config := collective.GroupConfig{Name: "world"}
	if c.packed {
		config.Packed = collective.PackAll
	}
	g, ctx := errgroup.WithContext(t.Context())
	for _, tr := range c.transports(t) {
		g.Go(func() error {
			comm := collective.NewGroup(tr, config)
			return errors.Join(f(ctx, comm), comm.Close(), tr.Close())
		})
	}
	require.NoError(t, g.Wait())
}

func (c combination) transports(t *testing.T) (out []collective.Transport) {
	if c.transport == "inproc" {
		for _, tr := range inproc.New(c.ranks) {
			out = append(out, tr)
		}
		return out
	}
	return joined(t, c.transport, c.ranks)
}

// transportNames lists what this system has, and backends that stand for one.
func transportNames() []string {
	if *gridTransport != "" {
		return []string{*gridTransport}
	}
	names := append([]string{"inproc", "tcp"}, acceleratorNames()...)
	if runtime.GOOS == "linux" {
		names = append(names, "shm")
	}
	return names
}

// joined makes transports whose ranks meet in a store, as processes do.
func joined(t *testing.T, name string, ranks int) []collective.Transport {
	return commtest.Joined(t, ranks, func(ctx context.Context, r int, client *store.Client) (collective.Transport, error) {
		if name == "shm" {
			return shm.Join(ctx, shm.Config{Rank: r, Size: ranks, Store: client, Token: commtest.JoinToken})
		}
		return tcp.Join(ctx, tcp.Config{Rank: r, Size: ranks, Store: client, Token: commtest.JoinToken})
	})
}
