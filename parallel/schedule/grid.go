package schedule

import (
	"fmt"
	"strings"
)

// Position is the place of an action: its rank and its index in the list.
type Position struct{ Rank, Index int }

// Error is a fault of a schedule. Its text ends with the grid around the
// position and an arrow that points at it.
type Error struct {
	At   Position
	Text string
	Grid string
}

func (e *Error) Error() string {
	return fmt.Sprintf("schedule: rank %d, action %d: %s\n%s", e.At.Rank, e.At.Index, e.Text, e.Grid)
}

func (s Schedule) fault(at Position, format string, args ...any) error {
	return &Error{At: at, Text: fmt.Sprintf(format, args...), Grid: s.Picture(at)}
}

// Grid draws the lists: a line per rank, a column per index.
func (s Schedule) Grid() string {
	longest := 0
	for _, list := range s {
		longest = max(longest, len(list))
	}
	return s.window(0, len(s), 0, longest, Position{Rank: -1})
}

// How far an error's picture reaches to each side of the arrow.
const (
	ranksAround   = 8
	actionsAround = 8
)

// Picture draws the grid around a position, with an arrow that points at it.
func (s Schedule) Picture(at Position) string {
	longest := 0
	for _, list := range s {
		longest = max(longest, len(list))
	}
	// The arrow may point just behind a list's end, where something is missing.
	return s.window(max(at.Rank-ranksAround, 0), min(at.Rank+ranksAround+1, len(s)),
		max(at.Index-actionsAround, 0), min(at.Index+actionsAround+1, max(longest, at.Index+1)), at)
}

// window draws the ranks [top, bottom) and the indices [left, right).
func (s Schedule) window(top, bottom, left, right int, at Position) string {
	width := len(fmt.Sprint(max(right-1, 0)))
	for r := top; r < bottom; r++ {
		for i := left; i < min(right, len(s[r])); i++ {
			width = max(width, len(s[r][i].String()))
		}
	}
	var b strings.Builder
	line := func(name string, cell func(i int) string) {
		text := fmt.Sprintf("%-8s", name)
		for i := left; i < right; i++ {
			text += fmt.Sprintf(" %-*s", width, cell(i))
		}
		b.WriteString(strings.TrimRight(text, " "))
		b.WriteByte('\n')
	}
	line("", func(i int) string { return fmt.Sprint(i) })
	for r := top; r < bottom; r++ {
		line(fmt.Sprintf("rank %d", r), func(i int) string {
			if i < len(s[r]) {
				return s[r][i].String()
			}
			return ""
		})
		if r == at.Rank {
			line("", func(i int) string {
				if i == at.Index {
					return "^"
				}
				return ""
			})
		}
	}
	return b.String()
}
