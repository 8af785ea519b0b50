package trainer

import (
	"path"
	"strings"
)

// limitFiles names the files below root that may limit the memory of a process
// whose /proc/self/cgroup holds text: of its own group and of those around it,
// in both versions of control groups. Not all of them exist. In a container the
// groups' root is what it sees, whatever the text says.
func limitFiles(root, text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		folder, file := root, "memory.max"
		switch {
		case !ok:
			continue
		case strings.Contains(","+controllers+",", ",memory,"):
			folder, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			out = append(out, path.Join(folder, group, file))
			if group == "/" {
				break
			}
		}
	}
	return out
}
