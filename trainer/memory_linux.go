package trainer

import "golang.org/x/sys/unix"

// memory is the host's main memory in bytes, 0 when it is not known.
func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
