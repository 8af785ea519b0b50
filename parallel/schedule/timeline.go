package schedule

import (
	"fmt"
	"math"
	"strings"
)

// Timeline draws a simulation: a line per rank, a column per unit of time, an
// action at the column of its start and dashes while it lasts, dots where the
// rank is idle. t is what s.Simulate returned. Times that are no multiples of
// unit are rounded.
func (s Schedule) Timeline(t Timing, unit float64) string {
	columns := int(math.Round(t.Span / unit))
	width := 2
	for _, list := range s {
		for _, a := range list {
			if a.Kind <= Weight {
				width = max(width, len(a.String())+1)
			}
		}
	}
	var b strings.Builder
	for rank, list := range s {
		line := []byte(strings.Repeat("."+strings.Repeat(" ", width-1), columns))
		for i, a := range list {
			if a.Kind > Weight {
				continue
			}
			from := int(math.Round(t.Ranks[rank].Starts[i]/unit)) * width
			to := int(math.Round(t.Ranks[rank].Ends[i]/unit)) * width
			for at := from; at < to-1; at++ {
				line[at] = '-'
			}
			copy(line[from:to], a.String())
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("rank %-3d %s", rank, line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
