package collective_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onRanks runs f on n ranks at once; closing is left to f, so that failures can
// be looked at before anybody leaves.
func onRanks(t *testing.T, n int, config func(rank int) collective.GroupConfig, f func(ctx context.Context, g *collective.Group) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all errgroup.Group
	world := make([]*collective.Group, n)
	transports := inproc.New(n)
	for r, transport := range transports {
		world[r] = collective.NewGroup(transport, config(r))
	}
	for _, g := range world {
		all.Go(func() error { return f(ctx, g) })
	}
	require.NoError(t, all.Wait())
	for r, g := range world {
		require.NoError(t, g.Close())
		require.NoError(t, transports[r].Close())
	}
}

func plainConfig(int) collective.GroupConfig { return collective.GroupConfig{} }
