//go:build linux && (amd64 || arm64)

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChunks: every rank has a part of what is worth sharing, and none has much
// at a time.
func TestChunks(t *testing.T) {
	for _, c := range []struct{ bytes, ranks, want int }{
		{1, 4, leastChunk},
		{64 << 10, 4, 16 << 10},
		{64<<10 + 4, 4, 20 << 10},
		{256 << 10, 4, 64 << 10},
		{100 << 10, 3, 36 << 10},
		{64 << 20, 4, mostChunk},
	} {
		require.Equal(t, c.want, chunkOf(c.bytes, c.ranks), "%d bytes on %d ranks", c.bytes, c.ranks)
	}
}
