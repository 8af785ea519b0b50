package monitor

import (
	"fmt"
	"strings"
	"time"
)

// mostOthers bounds how many ranks a report speaks of.
const mostOthers = 16

// report is what the user reads. who names a rank.
func (s *stall) report(who func(rank int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of group %s (%s) has not ended after %s", s.title(), s.name, s.call.about(), rounded(s.longest))
	if len(s.waiting) > 0 {
		fmt.Fprintf(&b, "\n    %s in it", waitOrWaits(s.waiting))
	}
	missing := false
	for i, o := range s.others {
		missing = missing || o.missing
		if i >= mostOthers {
			continue
		}
		if same := s.alike(i); same != nil {
			if same[0] == o.rank {
				fmt.Fprintf(&b, "\n    ranks %s: each %s", list(same), o.text)
			}
			continue
		}
		fmt.Fprintf(&b, "\n    %s %s", who(o.rank), o.text)
		for i, line := range o.doing {
			if i == 0 {
				b.WriteString("; its goroutines:")
			}
			b.WriteString("\n        " + line)
		}
	}
	if more := len(s.others) - mostOthers; more > 0 {
		fmt.Fprintf(&b, "\n    and %d more ranks are not in it", more)
	}
	if !missing {
		b.WriteString("\n    nobody is missing: the call itself is slow, or a message of it is")
	}
	if s.cycle != nil {
		fmt.Fprintf(&b, "\n    %s for each other in different calls; if none of them starts the other's call, they do so for ever", waitOrWaits(s.cycle))
	}
	return b.String()
}

// title names what has stalled.
func (s *stall) title() string {
	if s.rank >= 0 {
		return fmt.Sprintf("message %d", s.sequence)
	}
	return s.call.title()
}

// alike lists the ranks of whom the same is to be said as of others[i], or nil
// when that is one alone.
func (s *stall) alike(i int) []int {
	var same []int
	for _, o := range s.others[:min(len(s.others), mostOthers)] {
		if o.text == s.others[i].text && len(o.doing) == 0 && len(s.others[i].doing) == 0 {
			same = append(same, o.rank)
		}
	}
	if len(same) < 2 {
		return nil
	}
	return same
}

// waitOrWaits is "ranks 0 and 2 to 5 wait".
func waitOrWaits(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d waits", ranks[0])
	}
	return "ranks " + list(ranks) + " wait"
}

// list is "0 and 2 to 5".
func list(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j > i+1 {
			parts = append(parts, fmt.Sprintf("%d to %d", ranks[i], ranks[j]))
		} else {
			for k := i; k <= j; k++ {
				parts = append(parts, fmt.Sprint(ranks[k]))
			}
		}
		i = j + 1
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
