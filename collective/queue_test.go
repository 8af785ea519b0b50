package collective

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPoppedCallRuns: a call is the running one as soon as it is no longer queued,
// so that a Close in between knows that it leaves it.
func TestPoppedCallRuns(t *testing.T) {
	g := NewGroup(besideTransport{}, GroupConfig{})
	g.mu.Lock()
	g.running = true // as whoever runs calls
	g.sequence++
	g.first = &Work{group: g, sequence: g.sequence}
	g.last = g.first
	g.pop()
	g.mu.Unlock()
	require.EqualValues(t, 1, g.currentLocal.Load())
	require.NoError(t, g.Close())
}
