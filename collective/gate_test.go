package collective

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// failingTransport delivers so many messages, which say what is expected, and
// then fails.
type failingTransport struct {
	besideTransport
	left *int
	head header
}

var errGone = errors.New("gone")

func (t failingTransport) Recv(_ context.Context, _ int, _ Tag, b []byte) error {
	if *t.left--; *t.left < 0 {
		return errGone
	}
	if len(b) == headerSize {
		t.head.encode(b)
	}
	return nil
}

func (t failingTransport) RecvInPlace(_ context.Context, _ int, _ Tag, use func([]byte) error) (bool, error) {
	if *t.left--; *t.left < 0 {
		return true, errGone
	}
	return true, use(make([]byte, SegmentSize))
}

// TestReceiveThatFailsPassesNothingOn: the count that lets the sender beside go on
// has what arrived, whole, and nothing of the message that failed. Were it
// higher, stale values would be passed on to the next rank and, there, taken for
// a sum.
func TestReceiveThatFailsPassesNothingOn(t *testing.T) {
	const segments = 3
	values := device.FromF32(make([]float32, segments*SegmentSize/4))
	for _, reduce := range []bool{false, true} {
		for arrive := range segments {
			left := 1 + arrive // the header comes first
			transport := failingTransport{left: &left}
			g := NewGroup(transport, GroupConfig{})
			e := &g.executor
			e.actedCount.reset()
			e.receive.taken, e.receive.pace.own = nil, &e.actedCount
			err := e.receive.receive(0, header{}, intake{into: values, reduce: reduce}, nil)
			require.ErrorIs(t, err, errGone)
			require.EqualValues(t, arrive*SegmentSize/4, e.actedCount.reached.Load(), "reduces: %v, %d messages arrived", reduce, arrive)
			require.NoError(t, g.Close())
		}
	}
}
