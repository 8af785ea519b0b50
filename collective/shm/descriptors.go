//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// perMessage is how many descriptors one message carries; the kernel takes 253.
const perMessage = 100

// sendDescriptors passes descriptors on; the caller keeps its own.
func sendDescriptors(conn *net.UnixConn, fds []int) error {
	for len(fds) > 0 {
		n := min(len(fds), perMessage)
		if _, _, err := conn.WriteMsgUnix([]byte{byte(n)}, unix.UnixRights(fds[:n]...), nil); err != nil {
			return fmt.Errorf("pass descriptors: %w", err)
		}
		fds = fds[n:]
	}
	return nil
}

// receiveDescriptors takes exactly n descriptors, which the caller then owns.
func receiveDescriptors(conn *net.UnixConn, n int) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			fds = nil
		}
	}()
	oob := make([]byte, unix.CmsgSpace(4*perMessage))
	for len(fds) < n {
		var count [1]byte
		_, oobn, flags, _, err := conn.ReadMsgUnix(count[:], oob)
		if err != nil {
			return fds, fmt.Errorf("receive descriptors: %w", err)
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return fds, err
		}
		for _, m := range messages {
			got, err := unix.ParseUnixRights(&m)
			if err != nil {
				return fds, err
			}
			fds = append(fds, got...)
		}
		if len(messages) == 0 || flags&unix.MSG_CTRUNC != 0 {
			return fds, errors.New("descriptors are missing (is the limit of open files too low?)")
		}
	}
	if len(fds) != n {
		return fds, fmt.Errorf("%d descriptors instead of %d", len(fds), n)
	}
	return fds, nil
}
