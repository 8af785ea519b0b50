package monitor

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

const (
	stackBytes     = 1 << 20
	mostFrames     = 8
	mostGoroutines = 6
	module         = "github.com/gradfusion/gradfusion/"
)

// goroutines says what this process does, one line for each goroutine of the
// user or the trainer: names of functions, the outer ones first, and where the
// innermost stands.
func goroutines() []string {
	b := make([]byte, stackBytes)
	return trim(string(b[:runtime.Stack(b, true)]))
}

// trim shortens the runtime's dump of all goroutines.
func trim(dump string) []string {
	var lines []string
	counts := map[string]int{}
	for block := range strings.SplitSeq(strings.TrimSpace(dump), "\n\n") {
		line, ok := trimOne(block)
		if !ok {
			continue
		}
		if counts[line]++; counts[line] == 1 {
			lines = append(lines, line)
		}
	}
	more := len(lines) - mostGoroutines
	if more > 0 {
		lines = lines[:mostGoroutines]
	}
	for i, line := range lines {
		if n := counts[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s (%d goroutines)", line, n)
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more goroutines", more))
	}
	return lines
}

// trimOne shortens one goroutine; false when it is none of the user's.
func trimOne(block string) (string, bool) {
	head, rest, _ := strings.Cut(block, "\n")
	_, state, bracketed := strings.Cut(head, " [")
	if !strings.HasPrefix(head, "goroutine ") || !bracketed {
		return "", false
	}
	names, creator, at := frames(rest)
	// Who was started by a helper is known by its own outermost function.
	if len(names) == 0 || serves(creator) || serves(names[len(names)-1]) || strings.HasPrefix(names[0], module+"collective/monitor.goroutines") {
		return "", false
	}
	var out strings.Builder
	if len(names) > mostFrames {
		names = names[:mostFrames]
		out.WriteString("... > ")
	}
	for i := len(names) - 1; i >= 0; i-- {
		out.WriteString(names[i][strings.LastIndexByte(names[i], '/')+1:])
		if i > 0 {
			out.WriteString(" > ")
		}
	}
	fmt.Fprintf(&out, " at %s [%s]", at, strings.TrimSuffix(state, "]:"))
	return out.String(), true
}

// frames returns the functions of a goroutine, the innermost first and without
// the runtime's, who started it, and the place in the innermost.
func frames(text string) (names []string, creator, at string) {
	for line := range strings.SplitSeq(text, "\n") {
		if by, ok := strings.CutPrefix(line, "created by "); ok {
			by, _, _ = strings.Cut(by, " in goroutine")
			return names, by, at
		}
		if place, ok := strings.CutPrefix(line, "\t"); ok {
			if at == "" && len(names) > 0 {
				place, _, _ = strings.Cut(place, " ")
				at = path.Base(place)
			}
			continue
		}
		name := line
		if i := strings.LastIndexByte(name, '('); i > 0 {
			name = name[:i]
		}
		if !helps(name) {
			names = append(names, name)
		}
	}
	return names, "", at
}

// serves reports whether a function belongs to a part that works for others,
// whose goroutines say nothing about what the rank is at.
func serves(function string) bool {
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	if dot < 0 {
		return false
	}
	pkg := function[:slash+dot]
	switch pkg {
	case "os/signal", "os/exec", "net/http", "runtime":
		return true
	}
	folder, ours := strings.CutPrefix(pkg, module)
	folder, _, _ = strings.Cut(folder, "/")
	switch folder {
	case "collective", "device", "launch", "observe", "data", "checkpoint":
		return ours && !strings.HasSuffix(pkg, "_test")
	}
	return strings.HasPrefix(pkg, "github.com/vbauerster/") || strings.HasPrefix(pkg, "go.uber.org/")
}

// helps reports whether a function is left out: it only runs or parks others.
func helps(name string) bool {
	for _, prefix := range []string{"runtime.", "runtime/", "internal/", "sync.", "sync/", "testing.", "panic", "golang.org/x/sync/"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
