package schedule

import (
	"bufio"
	"fmt"
	"io"
)

// SVG sizes, in pixels.
const (
	svgRow    = 30
	svgLeft   = 60 // of the names of the ranks
	svgWidth  = 1100
	svgMargin = 8
)

// WriteSVG draws a timing of s as a picture: a row for each rank, a box for each
// computation, as wide as it takes, with the micro-batch's index in it; forwards
// are blue, backward passes green, and of their halves the inputs' light green and
// the weights' yellow. Stages beyond a rank's first are darker. t is what
// s.Simulate returned, or times that were measured.
func (s Schedule) WriteSVG(w io.Writer, t Timing) error {
	out := bufio.NewWriter(w)
	height := len(s)*svgRow + 2*svgMargin + 20
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n",
		svgLeft+svgWidth+2*svgMargin, height)
	fmt.Fprintf(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	scale := 0.0
	if t.Span > 0 {
		scale = svgWidth / t.Span
	}
	stages := s.Stages()
	for rank, list := range s {
		y := svgMargin + rank*svgRow
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\">rank %d</text>\n", svgMargin, y+svgRow/2+2, rank)
		fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#eeeeee\"/>\n", svgLeft, y, svgWidth, svgRow-4)
		for i, a := range list {
			if a.Kind > Weight {
				continue
			}
			x, wide := svgLeft+t.Ranks[rank].Starts[i]*scale, (t.Ranks[rank].Ends[i]-t.Ranks[rank].Starts[i])*scale
			fmt.Fprintf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" stroke=\"white\"><title>%s</title></rect>\n",
				x, y, wide, svgRow-4, colour(a, len(stages[rank]) > 1 && a.Stage != stages[rank][0]), a)
			if wide >= 14 {
				fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x+wide/2, y+svgRow/2+2, a.Micro)
			}
		}
	}
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\">idle %.1f %%</text>\n</svg>\n", svgLeft, height-svgMargin, 100*t.IdleShare())
	return out.Flush()
}

func colour(a Action, later bool) string {
	i := 0
	if later {
		i = 1
	}
	return map[Kind][2]string{
		Forward:  {"#9ecae1", "#6baed6"},
		Backward: {"#a1d99b", "#74c476"},
		Input:    {"#c7e9c0", "#a1d99b"},
		Weight:   {"#ffeda0", "#fed976"},
	}[a.Kind][i]
}
