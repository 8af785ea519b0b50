//go:build !linux

package tcp

// cutOff does not know.
func (s *socket) cutOff() bool { return false }

// taken does not know either.
func (s *socket) taken() uint64 { return 0 }
