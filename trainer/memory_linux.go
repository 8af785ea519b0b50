package trainer

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is what this process can have in bytes: the host's main memory, or a
// lower limit of its control group or user. 0 when it is not known.
func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	have := uint64(info.Totalram) * uint64(info.Unit)
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for _, name := range limitFiles("/sys/fs/cgroup", string(groups)) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil { // "max" is no number
			have = min(have, limit)
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil {
		have = min(have, limit.Cur)
	}
	return have
}
