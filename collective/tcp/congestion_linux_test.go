package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestConnectionsWithinAHostAreNotPaced: at both ends, whatever the kernel's
// default is. Where that is reno already it shows nothing.
func TestConnectionsWithinAHostAreNotPaced(t *testing.T) {
	ranks := world(t, 2)
	for rank, r := range ranks {
		raw, err := r.links[1-rank].sockets[0].tcp.SyscallConn()
		require.NoError(t, err)
		var name string
		require.NoError(t, raw.Control(func(fd uintptr) {
			name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		}))
		require.NoError(t, err)
		require.Equal(t, "reno", name)
	}
	closeAll(t, ranks)
}
