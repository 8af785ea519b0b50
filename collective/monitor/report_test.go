package monitor

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestReports has what rank 0 can see, and what it says about it.
func TestReports(t *testing.T) {
	call := func(sequence uint64, seconds int) callBeat {
		return callBeat{Sequence: sequence, Text: "all-reduce sum of 1024 f32", Label: "bucket 3: conv1.weight, conv1.bias", Peer: 1, For: time.Duration(seconds) * time.Second}
	}
	all := []int{0, 1, 2, 3, 4, 5}
	in := func(c callBeat) view {
		return view{beat: beat{Groups: []groupBeat{{ID: 1, Name: "world", Ended: c.Sequence - 1, Calls: []callBeat{c}, Ranks: all}}}}
	}
	idle := func(ended uint64, seconds int) view {
		return view{beat: beat{Groups: []groupBeat{{ID: 1, Name: "world", Ended: ended, Idle: time.Duration(seconds) * time.Second}}}}
	}
	silent := func(v view, text string) view {
		v.silent, v.age = text, 4*time.Second
		return v
	}
	making := view{beat: beat{Groups: []groupBeat{{ID: 1, Name: "world", Calls: []callBeat{{Text: "joining", Peer: -1, For: 9 * time.Second}}, Ranks: all[:2]}}}}
	other := in(call(7, 6))
	other.Groups = append(idle(6, 9).Groups, groupBeat{ID: 2, Name: "pair", Calls: []callBeat{{Sequence: 2, Text: "barrier", Peer: 0, For: 6 * time.Second}}, Ranks: []int{0, 1}})
	receive := idle(6, 9)
	message := func(text string, sequence uint64, recv bool, peer int) callBeat {
		return callBeat{Sequence: sequence, Text: text + " of 64 f32", Exchange: true, Recv: recv, Peer: peer, For: 8 * time.Second}
	}
	parts := func(sent uint64, peer int, calls ...callBeat) view {
		v := idle(6, 9)
		v.Groups[0].Calls, v.Groups[0].Sent = calls, map[int]uint64{peer: sent}
		return v
	}
	ahead := message("receive", 12, true, 0)
	ahead.Ahead = true
	receive.Groups[0].Calls = []callBeat{message("receive", 41, true, 0)}
	var out strings.Builder
	for _, tt := range []struct {
		name  string
		views []view
	}{
		{"nothing to tell", []view{in(call(7, 4)), idle(6, 9)}},
		{"one computes", []view{in(call(7, 5)), idle(6, 7), in(call(7, 6)), in(call(7, 5)), idle(7, 5), in(call(7, 3))}},
		{"one is stopped in the call before", []view{in(call(7, 5)), silent(in(call(6, 2)), "is stopped by a signal or a debugger"), in(call(7, 6)), in(call(7, 6)), in(call(7, 6)), in(call(7, 6))}},
		{"one has left, one never came", []view{in(call(7, 12)), {beat: beat{Left: true}}, {}, in(call(7, 12)), in(call(7, 12)), in(call(7, 12))}},
		{"one is a call behind", []view{in(call(7, 5)), in(call(6, 30)), idle(6, 2), in(call(7, 5)), in(call(7, 5)), in(call(7, 5))}},
		{"all are in it", []view{in(call(7, 5)), in(call(7, 5)), in(call(7, 5)), in(call(7, 5)), in(call(7, 5)), in(call(7, 5))}},
		{"a cycle", []view{in(call(7, 6)), other}},
		{"one makes the group, one is in its first call", []view{making, in(call(1, 5))}},
		{"a message", []view{idle(6, 8), receive}},
		{"a message that both are in", []view{parts(40, 1, message("send", 41, false, 1)), receive}},
		{"a message that was sent", []view{parts(41, 1, message("receive", 12, true, 1)), receive}},
		{"the receiver is busy and has begun to receive ahead", []view{parts(11, 1, message("receive", 41, true, 1)), parts(40, 0, ahead)}},
		{"two wait for a message of each other", []view{parts(11, 1, message("receive", 41, true, 1)), receive}},
		{"one waits for one that waits", []view{parts(11, 1, message("receive", 41, true, 1)), parts(40, 0, message("receive", 5, true, 2)), idle(6, 9)}},
	} {
		fmt.Fprintf(&out, "== %s\n", tt.name)
		for _, s := range findStalls(tt.views, 5*time.Second) {
			for i := range s.others {
				if s.others[i].ask {
					s.others[i].doing = []string{"main.main > main.slow at main.go:12 [running]", "main.load at load.go:3 [sleep] (2 goroutines)"}
				}
			}
			out.WriteString(s.report(func(r int) string { return here{PID: 100 + r, Host: "h"}.who(r, here{PID: 1, Host: "h"}) }) + "\n")
		}
	}
	golden(t, "testdata/reports.txt", out.String())
}

func TestTrim(t *testing.T) {
	dump, err := os.ReadFile("testdata/goroutines.txt")
	require.NoError(t, err)
	golden(t, "testdata/trimmed.txt", strings.Join(trim(string(dump)), "\n")+"\n")
}

// TestOwnGoroutines: the real runtime's dump has the form that trim knows.
func TestOwnGoroutines(t *testing.T) {
	b := make([]byte, 1<<20)
	require.Regexp(t, `main\.main > monitor\.TestMain > .* at \w+\.go:\d+ \[.+\]`, strings.Join(trim(string(b[:runtime.Stack(b, true)])), "\n"))
}

func FuzzTrim(f *testing.F) {
	dump, err := os.ReadFile("testdata/goroutines.txt")
	require.NoError(f, err)
	f.Add(string(dump))
	f.Add("goroutine 1 [\n\tx\ncreated by ")
	f.Fuzz(func(t *testing.T, dump string) {
		require.LessOrEqual(t, len(trim(dump)), mostGoroutines+1)
	})
}
