package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// view is what rank 0 knows of a rank.
type view struct {
	beat
	age    time.Duration // of the beat
	silent string        // why it is not heard of, such as "is stopped"; or empty
}

// stall is a call that waits for long.
type stall struct {
	stallID
	name    string // of the group
	call    callBeat
	longest time.Duration
	waiting []int
	others  []other // the ranks that do not wait in it
	cycle   []int   // ranks that wait for each other
}

// stallID is equal for one call over all beats.
type stallID struct {
	group    uint64
	sequence uint64
	rank     int // of an Exchange's part, else -1
	text     string
}

// other is what a rank does that is not in a stalled call.
type other struct {
	rank    int
	text    string   // after the rank's name
	missing bool     // the call waits for it
	waits   bool     // in some other call
	ask     bool     // its goroutines can tell more
	doing   []string // what they do
}

// blamed reports whether a rank holds the call up by itself: one that waits too
// does not, unless it waits for those who wait for it.
func (o *other) blamed(s *stall) bool {
	return o.missing && (!o.waits || slices.Contains(s.cycle, o.rank))
}

// findStalls looks for calls that have waited for at least limit: of each group
// the oldest, and all parts of Exchanges that somebody needs by now.
func findStalls(views []view, limit time.Duration) []stall {
	var out []stall
	for rank := range views {
		v := &views[rank]
		for _, g := range v.Groups {
			for _, c := range g.Calls {
				if c.For+v.age < limit || c.Ahead || v.Left || v.silent != "" {
					continue
				}
				s := stall{stallID: stallID{g.ID, c.Sequence, -1, ""}, name: g.Name, call: c, longest: c.For + v.age}
				if c.Exchange {
					s.rank, s.text = rank, c.Text
					s.waiting = []int{rank}
					if c.Peer >= 0 && c.Peer < len(views) {
						s.others = []other{about(views, c.Peer, &s)}
					}
					out = append(out, s)
					continue
				}
				at := slices.IndexFunc(out, func(o stall) bool { return o.group == g.ID && o.rank < 0 })
				switch {
				case at < 0:
					out = append(out, s)
					at = len(out) - 1
				case out[at].sequence > s.sequence:
					out[at] = s
				case out[at].sequence == s.sequence:
					out[at].longest = max(out[at].longest, s.longest)
				}
			}
		}
	}
	for i := range out {
		if out[i].rank < 0 {
			out[i].sides(views)
		}
	}
	findCycles(out)
	slices.SortFunc(out, func(a, b stall) int {
		return cmp.Or(cmp.Compare(b.longest, a.longest), strings.Compare(a.name, b.name), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.rank, b.rank))
	})
	return out
}

// sides tells the ranks that wait in the call from the others.
func (s *stall) sides(views []view) {
	members := map[int]bool{}
	for rank := range views {
		if g := views[rank].group(s.group); g != nil {
			members[rank] = true
			for _, r := range g.Ranks {
				members[r] = true
			}
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(members)) {
		if rank >= len(views) {
			continue
		}
		v := &views[rank]
		if g := v.group(s.group); g != nil && v.silent == "" && !v.Left && g.in(s.sequence) != nil {
			s.waiting = append(s.waiting, rank)
		} else {
			s.others = append(s.others, about(views, rank, s))
		}
	}
}

func (b *beat) group(id uint64) *groupBeat {
	for i := range b.Groups {
		if b.Groups[i].ID == id {
			return &b.Groups[i]
		}
	}
	return nil
}

// running returns the call that runs, or nil.
func (g *groupBeat) running() *callBeat {
	for i := range g.Calls {
		if c := &g.Calls[i]; !c.Exchange {
			return c
		}
	}
	return nil
}

// in returns the running call when it has that number.
func (g *groupBeat) in(sequence uint64) *callBeat {
	if c := g.running(); c != nil && c.Sequence == sequence {
		return c
	}
	return nil
}

// about says what a rank does that does not wait in a stalled call.
func about(views []view, rank int, s *stall) other {
	v := &views[rank]
	o := other{rank: rank, missing: true}
	g := v.group(s.group)
	switch {
	case v.Left:
		o.text = "has left the job"
		return o
	case v.silent != "":
		o.text = v.silent + "; " + v.last(g)
		return o
	case g == nil:
		o.text = "has not made the group, or has closed it"
	case s.rank >= 0:
		if o.text, o.missing = g.part(s); !o.missing {
			return o
		}
	case g.running() != nil:
		c := g.running()
		o.waits = true
		if c.Sequence > s.sequence {
			o.missing, o.text = false, fmt.Sprintf("is in call %d already", c.Sequence)
		} else {
			o.text = fmt.Sprintf("is in %s (%s) still", c.title(), c.about())
		}
		return o
	case g.Ended >= s.sequence:
		o.missing, o.text = false, "has done its part"
		return o
	default:
		o.text = "has not started it"
	}
	if where := v.busy(); where != "" {
		o.waits = true
		o.text += "; it is in " + where
	} else {
		o.ask = true
		o.text += "; " + v.last(g)
	}
	return o
}

// last says what a rank did last, as far as its last beat told.
func (v *view) last(g *groupBeat) string {
	if g == nil {
		return "nothing is known of its calls"
	}
	if c := g.running(); c != nil {
		return fmt.Sprintf("it was last seen in %s (%s)", c.title(), c.about())
	}
	if where := v.busy(); where != "" {
		return "it was last seen in " + where
	}
	if g.Ended == 0 {
		return "it has ended no call of this group yet"
	}
	return fmt.Sprintf("its last call, %d, ended %s ago", g.Ended, rounded(g.Idle+v.age))
}

// part says how far a rank is with its side of a stalled part of an Exchange, and
// whether that has yet to begin.
func (g *groupBeat) part(s *stall) (text string, missing bool) {
	passed, done, not := g.Received, "has received it", "does not receive it"
	if s.call.Recv {
		passed, done, not = g.Sent, "has sent it", "has not sent it"
	}
	if passed[s.rank] >= s.sequence {
		return done, false
	}
	for _, c := range g.Calls {
		if c.Exchange && c.Recv != s.call.Recv && c.Peer == s.rank && c.Sequence == s.sequence {
			return "is in it too (" + c.about() + ")", false
		}
	}
	return not, true
}

// busy names a call that a rank is in, or a part of an Exchange that it needs now.
func (v *view) busy() string {
	for _, g := range v.Groups {
		for _, c := range g.Calls {
			switch {
			case c.Ahead: // it may be busy with anything
			case c.Exchange:
				return fmt.Sprintf("message %d (%s) with rank %d in group %s", c.Sequence, c.about(), c.Peer, g.Name)
			default:
				return fmt.Sprintf("%s of group %s (%s)", c.title(), g.Name, c.about())
			}
		}
	}
	return ""
}

// title names a call of a group; the group's making is its call 0.
func (c *callBeat) title() string {
	if c.Sequence == 0 {
		return "the making"
	}
	return fmt.Sprintf("call %d", c.Sequence)
}

func (c *callBeat) about() string {
	if c.Label == "" {
		return c.Text
	}
	return c.Text + " of " + c.Label
}

// findCycles looks for ranks that wait for each other in different groups.
func findCycles(stalls []stall) {
	next := map[int][]int{} // rank: those it waits for that wait themselves
	for _, s := range stalls {
		for _, o := range s.others {
			if o.missing && o.waits {
				for _, r := range s.waiting {
					next[r] = append(next[r], o.rank)
				}
			}
		}
	}
	for i := range stalls {
		for _, r := range stalls[i].waiting {
			if cycle := walk(next, r, r, map[int]bool{}); cycle != nil {
				slices.Sort(cycle)
				stalls[i].cycle = cycle
				break
			}
		}
	}
}

// walk returns the ranks on a way from at to goal, or nil.
func walk(next map[int][]int, at, goal int, seen map[int]bool) []int {
	seen[at] = true
	for _, r := range next[at] {
		if r == goal {
			return []int{at}
		}
		if seen[r] {
			continue
		}
		if rest := walk(next, r, goal, seen); rest != nil {
			return append(rest, at)
		}
	}
	return nil
}
