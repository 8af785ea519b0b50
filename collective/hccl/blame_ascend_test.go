//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// TestWhoseFailureEndsALane: the peer's is what HCCL says of a message with it, and not
// what this rank meets elsewhere.
func TestWhoseFailureEndsALane(t *testing.T) {
	c := &Comm{job: &job{config: Config{Rank: 4}}, name: "world", ranks: []int{4, 7, 9}}
	l := &channel{lane: lane{peer: 2, recv: true}, comm: c, name: "world.from9.to4"}
	m := &message{buf: device.FromF32(make([]float32, 3))}
	own := &Error{Op: "aclrtCreateStream", Code: 207018}
	for name, test := range map[string]struct {
		err  error
		peer int
	}{
		"a message":                              {l.ofPeer(&Error{Op: "HcclBatchSendRecv", Code: resultRemote}), 2},
		"another communicator, which ended this": {own, -1},
		"another rank, as it says":               {&lost{"rank 9: out of memory"}, -1},
		"another rank, as the monitor says":      {&collective.LinkError{Rank: 4, Peer: 7, Err: context.Canceled}, 1},
		"the caller's":                           {l.ofPeer(context.Canceled), -1},
	} {
		var got *collective.PeerError
		require.ErrorAs(t, l.wrap(m, test.err), &got, name)
		require.Equal(t, test.peer, got.Peer, "%s: %v", name, got)
	}
	require.ErrorIs(t, l.wrap(m, own), own)
	require.NoError(t, l.ofPeer(nil))
}
