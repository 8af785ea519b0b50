package commtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/store"
)

// JoinToken is what ranks of Joined prove to know.
const JoinToken = "token"

// Joined makes the transports of a fresh world of n ranks that meet in a store, as
// processes do. join is called for all ranks at once; its client is closed after it.
// It fails tb when it cannot, and the caller closes the transports.
func Joined(tb testing.TB, n int, join func(ctx context.Context, rank int, client *store.Client) (collective.Transport, error)) []collective.Transport {
	tb.Helper()
	ctx := tb.Context()
	server, err := store.Listen(ctx, "127.0.0.1:0", JoinToken)
	require.NoError(tb, err)
	tb.Cleanup(func() { server.Close() })
	out := make([]collective.Transport, n)
	var joining errgroup.Group
	for r := range n {
		joining.Go(func() error {
			client, err := store.Dial(ctx, server.Addr().String(), JoinToken)
			if err != nil {
				return err
			}
			out[r], err = join(ctx, r, client)
			return errors.Join(err, client.Close())
		})
	}
	require.NoError(tb, joining.Wait())
	return out
}
