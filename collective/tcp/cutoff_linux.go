package tcp

import "golang.org/x/sys/unix"

// info is what the kernel knows of the connection, nil if it does not tell.
func (s *socket) info() *unix.TCPInfo {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		return nil
	}
	var info *unix.TCPInfo
	var asked error
	err = raw.Control(func(fd uintptr) { info, asked = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || asked != nil {
		return nil
	}
	return info
}

// taken is how many bytes the peer's host has taken over this connection.
func (s *socket) taken() uint64 {
	if info := s.info(); info != nil {
		return info.Bytes_acked
	}
	return 0
}

// owed is how many bytes of what was sent the peer's host has not taken, a frame more at
// most.
func (s *socket) owed() (n uint64) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if queued, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ); err == nil {
			n = uint64(queued) + s.out.unwritten()
		}
	})
	return n
}

// cutOff reports that the peer's host has let the kernel send something again, 0.2 s
// after the first time or more, or that there is no way to it although it would
// take something: there is no use in waiting, and the kernel goes on without this
// process. Of a process that is stopped or busy this is not so, as its kernel
// answers.
func (s *socket) cutOff() bool {
	info := s.info()
	if info == nil {
		return false
	}
	again := info.Unacked > 0 && info.Retransmits > 0
	nowhere := info.Unacked == 0 && info.Notsent_bytes > 0 && info.Snd_wnd > 0 && info.Probes > 0
	return again || nowhere
}
