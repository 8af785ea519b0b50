package tcp

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilledBeyondTheCredit: messages that are made in the transport's memory are
// announced from the caller's when the receiver keeps no more of them.
func TestFilledBeyondTheCredit(t *testing.T) {
	ranks := world(t, 2)
	const messages = eagerCredit/eagerMax + 20
	sent := make(chan error, 1)
	go func() {
		stage := make([]byte, eagerMax+fillRoom)
		for i := range uint32(messages) {
			if err := ranks[0].SendFilled(t.Context(), 1, 3, stage, func(b []byte) []byte {
				binary.LittleEndian.PutUint32(b, i)
				binary.LittleEndian.PutUint32(b[eagerMax-4:], i)
				return b[:eagerMax]
			}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	l := ranks[0].links[1]
	until(t, l, func() bool { return len(l.sends) > 0 })
	b := make([]byte, eagerMax)
	for i := range uint32(messages) {
		require.NoError(t, ranks[1].Recv(t.Context(), 0, 3, b))
		require.Equal(t, []uint32{i, i}, []uint32{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[eagerMax-4:])})
	}
	require.NoError(t, <-sent)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ranks[0].SendFilled(ctx, 1, 3, b, func([]byte) []byte { panic("of a call that is over") }), context.Canceled)
	closeAll(t, ranks)
	require.Error(t, ranks[0].SendFilled(t.Context(), 1, 3, b, func(b []byte) []byte { return b }), "of a closed transport")
}
