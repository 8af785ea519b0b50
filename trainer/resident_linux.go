package trainer

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
)

// resident returns this process's largest resident set in bytes, of which pages
// that other processes have mapped too count in parts: each process has one of as
// many equal parts as there are, so that all together count a page once. That is
// the high-water mark less what the parts of the present resident set leave out;
// pages that were shared earlier and are no longer mapped count whole. Ranks must
// ask while all have their memory still. 0 when the system does not tell.
func resident() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	most := kilobytes(status, "VmHWM:")
	if now, err := os.ReadFile("/proc/self/smaps_rollup"); err == nil { // since Linux 4.14
		most -= kilobytes(now, "Rss:") - kilobytes(now, "Pss:")
	}
	return max(most, 0) * 1024
}

// kilobytes finds a line such as "Pss:  259 kB" in a text of /proc; 0 without one.
func kilobytes(text []byte, key string) float64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if words := bytes.Fields(lines.Bytes()); len(words) == 3 && string(words[0]) == key {
			n, _ := strconv.ParseFloat(string(words[1]), 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}
