//go:build !unix

package tcp

import "syscall"

// attempt leaves everything to the writer where sockets are no descriptors.
type attempt struct{}

func (*attempt) prepare() {}

func (*attempt) write(syscall.RawConn, []byte) int { return 0 }

const canPoll = false

// polled is not used where canPoll is false.
type polled struct{}

func (*polled) prepare() {}

func (*polled) read(syscall.RawConn, []byte, bool) (int, error) { return 0, nil }

// threshold is not used where canPoll is false.
type threshold struct{}

func (*threshold) prepare() {}

func (*threshold) set(syscall.RawConn, int) {}

func (*threshold) reset() {}
