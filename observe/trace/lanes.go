package trace

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gradfusion/gradfusion/observe"
)

// computeLane is drawn first.
const computeLane = "compute"

// lane is a row of the picture: spans, by index, that nest.
type lane struct {
	name  string
	spans []int32
	open  []int64 // ends of the spans that hold the newest one, outermost first
}

// layOut deals spans to lanes: "compute" first, the others by name; a span
// that neither follows nor lies within the others of its lane goes to the next
// lane of that name, called "name (2)" and so on. Within a lane spans are in
// order of their start, the outer ones first.
func layOut(spans []observe.Span) []*lane {
	order := make([]int32, len(spans))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return compare(&spans[a], &spans[b]) })
	var lanes, same []*lane
	for i, k := range order {
		s := &spans[k]
		if i == 0 || laneOf(s) != laneOf(&spans[order[i-1]]) {
			lanes, same = append(lanes, same...), nil
		}
		at := slices.IndexFunc(same, func(l *lane) bool { return l.fits(s) })
		if at < 0 {
			at = len(same)
			same = append(same, &lane{name: laneName(laneOf(s), at)})
		}
		same[at].open = append(same[at].open, end(s))
		same[at].spans = append(same[at].spans, k)
	}
	return append(lanes, same...)
}

// fits closes what ends before s starts and reports whether s lies within
// what remains.
func (l *lane) fits(s *observe.Span) bool {
	for len(l.open) > 0 && l.open[len(l.open)-1] <= s.Start {
		l.open = l.open[:len(l.open)-1]
	}
	return len(l.open) == 0 || end(s) <= l.open[len(l.open)-1]
}

func compare(a, b *observe.Span) int {
	x, y := laneOf(a), laneOf(b)
	if x != y && (x == computeLane || y == computeLane) {
		if x == computeLane {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(x, y),
		cmp.Compare(a.Start, b.Start),
		cmp.Compare(end(b), end(a)),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Step, b.Step),
		cmp.Compare(a.Micro, b.Micro),
	)
}

func laneOf(s *observe.Span) string { return cmp.Or(s.Lane, computeLane) }

func end(s *observe.Span) int64 { return max(s.Start, s.End) }

func laneName(name string, twin int) string {
	if twin == 0 {
		return name
	}
	return name + " (" + strconv.Itoa(twin+1) + ")"
}
