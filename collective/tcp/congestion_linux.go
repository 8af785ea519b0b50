package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// withinHost has a connection that stays on its host sent without pacing. Where
// the kernel's default is BBR, as on many servers, it measures a rate and sets a
// timer for each packet, which on a path of memory copies takes as long as the
// copies. Reno is always there, and nothing is lost that it could be slow after.
func withinHost(conn *net.TCPConn) {
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, also := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !also || !here.IP.Equal(there.IP) && !there.IP.IsLoopback() {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it all goes on, more slowly
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
}
