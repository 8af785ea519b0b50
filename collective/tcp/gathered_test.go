package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
)

// TestGatheredLength: a peer cannot have this rank allocate more than one sends of a
// message where pieces come over several sockets.
func TestGatheredLength(t *testing.T) {
	ranks, err := join(t, 2, func(c *Config) { c.Sockets = 3 })
	require.NoError(t, err)
	most := ranks[1].Segment(0)
	use := func([]byte) error { return nil }
	var length *collective.LengthError

	sent := make(chan error, 1)
	go func() { sent <- ranks[0].Send(t.Context(), 1, 1, pattern(most+1, 1)) }()
	_, err = ranks[1].RecvInPlace(t.Context(), 0, 1, use)
	require.ErrorAs(t, err, &length)
	require.Equal(t, [2]int{most, most + 1}, [2]int{length.Want, length.Got})
	<-sent

	go func() { sent <- ranks[0].Send(t.Context(), 1, 1, pattern(most, 2)) }()
	got := []byte(nil)
	_, err = ranks[1].RecvInPlace(t.Context(), 0, 1, func(b []byte) error {
		got = append(got, b...)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, pattern(most, 2), got)

	l := ranks[0].links[1]
	forged := header{kind: kindAnnounce, id: idMax - 1, tag: 2, size: 1 << 61}
	l.sockets[0].out.append(l.transport, l.frame(forged, make([]byte, collective.HeadSize)))
	l.flush()
	_, err = ranks[1].RecvInPlace(t.Context(), 0, 2, use)
	require.ErrorAs(t, err, &length)
	require.Equal(t, 1<<61, length.Got)
	closeAll(t, ranks)
}
