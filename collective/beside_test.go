package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBatchAfterTheEnd hands the second goroutine a batch when the group has
// just ended: whoever waits for it learns of the end and is not left waiting.
func TestBatchAfterTheEnd(t *testing.T) {
	g := NewGroup(besideTransport{}, GroupConfig{})
	e := &g.executor
	e.sendBeside(batch{work: &Work{group: g}})
	require.NoError(t, e.awaitBeside())

	require.NoError(t, g.Close())
	<-e.besideEnded
	e.sendBeside(batch{work: &Work{group: g}})
	require.Error(t, e.awaitBeside())
	require.Empty(t, e.batches)
	require.NoError(t, e.awaitBeside(), "nothing is pending any more")
}

// besideTransport is a world of one that sends nothing.
type besideTransport struct{ Transport }

func (besideTransport) Rank() int      { return 0 }
func (besideTransport) Size() int      { return 1 }
func (besideTransport) Hosts() [][]int { return [][]int{{0}} }
func (besideTransport) SendAsReady(context.Context, int, Tag, []byte, func(int) (int, error)) error {
	return nil
}
func (besideTransport) SendFilled(context.Context, int, Tag, []byte, func([]byte) []byte) error {
	return nil
}
func (besideTransport) Segment(int) int             { return SegmentSize }
func (besideTransport) Processes() [][]int          { return nil }
func (besideTransport) Direct(uint64, []int) Direct { return nil }
