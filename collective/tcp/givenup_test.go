package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
)

// TestLastPartGivenUp: a sender that gives up while it writes the last part of a
// message fills the part with zeros. The receiver must not take the message for
// whole, although all of its bytes have come, and the abort that follows finds
// nothing left to end.
func TestLastPartGivenUp(t *testing.T) {
	tr, peer := half(t)
	defer peer.Close()
	const size = 1000
	b := make([]byte, size)
	received := make(chan error, 1)
	go func() { received <- tr.Recv(t.Context(), 1, 7, b) }()
	announce := make([]byte, collective.HeadSize)
	put(t, peer, header{kind: kindAnnounce, id: 3, tag: 7, size: size})
	_, err := peer.Write(announce)
	require.NoError(t, err)
	grant := expect(t, peer)
	require.Equal(t, kindGrant, grant.kind)
	slot := uint32(grant.tag)
	put(t, peer, header{kind: kindData, id: slot, size: size})
	filled := make([]byte, size+trailerLen)
	spoil(filled[size:], nil)
	_, err = peer.Write(filled)
	require.NoError(t, err)
	put(t, peer, header{kind: kindAbort, id: slot, tag: 3, size: size})
	var lost *collective.LinkError
	require.ErrorAs(t, <-received, &lost)
	require.ErrorContains(t, lost, "gave up sending")
	require.Equal(t, kindDone, expect(t, peer).kind)
	// The stream is whole.
	put(t, peer, header{kind: kindEager, tag: 8, size: 4})
	_, err = peer.Write([]byte("next"))
	require.NoError(t, err)
	next := make([]byte, 4)
	require.NoError(t, tr.Recv(t.Context(), 1, 8, next))
	require.Equal(t, "next", string(next))
	require.NoError(t, peer.Close())
	require.NoError(t, tr.Close())
}
