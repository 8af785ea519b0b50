package trainer

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is what this process can have in bytes: the host's main memory, or a
// lower limit of its container or user. 0 when it is not known.
func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	have := uint64(info.Totalram) * uint64(info.Unit)
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			have = min(have, limit)
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil {
		have = min(have, limit.Cur)
	}
	return have
}
