//go:build amd64 && !linux

package cpu

// allowAMX is not written for this system.
func allowAMX() bool { return false }
