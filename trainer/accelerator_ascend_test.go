//go:build ascend && linux && (amd64 || arm64)

package trainer_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// acceleratorNames lists the backends that combinations are drawn for too.
func acceleratorNames() []string {
	if os.Getenv(ascendsim.LibrariesVariable) == "" {
		return nil
	}
	return []string{"ascend"}
}

// acceleratorWorld runs f on every rank, each with a device.
func acceleratorWorld(t *testing.T, ranks int, f func(context.Context, collective.Comm) error) {
	t.Setenv("HCCL_HOST_SOCKET_PORT_RANGE", "auto")
	library, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err)
	meeting := store.NewLocal()
	g, ctx := errgroup.WithContext(t.Context())
	for r := range ranks {
		g.Go(func() error {
			d, err := library.Open(r)
			if err != nil {
				return err
			}
			comm, err := hccl.New(ctx, hccl.Config{Rank: r, Size: ranks, Device: d, Store: meeting, Namespace: "grid", Timeout: 5 * time.Minute, Getenv: os.Getenv})
			if err == nil {
				err = errors.Join(f(ctx, comm), comm.Close())
			}
			return errors.Join(err, d.Close())
		})
	}
	require.NoError(t, errors.Join(g.Wait(), library.Close()))
}
