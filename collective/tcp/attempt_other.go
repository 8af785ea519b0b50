//go:build !unix

package tcp

import "syscall"

// attempt leaves everything to the writer where sockets are no descriptors.
type attempt struct{}

func (*attempt) prepare() {}

func (*attempt) write(syscall.RawConn, []byte) int { return 0 }
