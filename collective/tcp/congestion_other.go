//go:build !linux

package tcp

import "net"

// withinHost does nothing where connections are not known to be paced.
func withinHost(*net.TCPConn) {}
