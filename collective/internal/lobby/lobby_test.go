package lobby

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldestIsPutOut(t *testing.T) {
	l := Lobby{Size: 2}
	var ends [3]net.Conn
	var far [3]net.Conn
	for i := range ends {
		ends[i], far[i] = net.Pipe()
		l.Enter(ends[i])
	}
	require.ErrorIs(t, l.Leave(ends[0]), ErrFull)
	_, err := far[0].Read(make([]byte, 1))
	require.Error(t, err, "it was closed")
	require.NoError(t, l.Leave(ends[2]))
	require.NoError(t, l.Leave(ends[1]))
	require.ErrorIs(t, l.Leave(ends[1]), ErrFull)
}
