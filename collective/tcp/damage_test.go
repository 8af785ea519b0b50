package tcp

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
)

// TestChecksumFindsInjectedCorruption: with checksums a changed bit is an error
// on the receiver, never a message.
func TestChecksumFindsInjectedCorruption(t *testing.T) {
	for _, length := range []int{100, 1 << 20} {
		ranks, err := join(t, 2, func(c *Config) { c.Checksum = true })
		require.NoError(t, err)
		faults, err := faulty.ParseAll([]string{"rank=0 kind=corrupt after=1"})
		require.NoError(t, err)
		sender := faulty.Wrap(ranks[0], faulty.Config{Faults: faults})
		var both errgroup.Group
		both.Go(func() error {
			// The second may be told of the receiver's leaving.
			return errors.Join(sender.Send(t.Context(), 1, 1, pattern(length, 1)), func() error {
				_ = sender.Send(t.Context(), 1, 1, pattern(length, 2))
				return nil
			}())
		})
		b := make([]byte, length)
		require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, b))
		require.Equal(t, pattern(length, 1), b)
		err = ranks[1].Recv(t.Context(), 0, 1, b)
		var lost *collective.LinkError
		require.ErrorAs(t, err, &lost)
		require.ErrorContains(t, err, "corrupt stream: the checksum of")
		require.NoError(t, ranks[1].Close())
		require.NoError(t, both.Wait())
		require.NoError(t, sender.Close())
	}
}
