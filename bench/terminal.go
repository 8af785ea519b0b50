package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The size of a diagram on a terminal, in characters.
const (
	terminalColumns, terminalRows = 60, 12
	terminalMargin                = 11
)

func pow(x, y float64) float64 { return math.Pow(x, y) }

// marks tell series apart on a terminal.
func marks() []rune { return []rune("●○◆◇▲△■□") }

// WriteTerminal draws what WriteSVG does with characters: the measured medians
// as marks, the fitted lines as dots, knees as K and crossovers as X.
func WriteTerminal(w io.Writer, results []Result) error {
	results = shown(results)
	if len(results) == 0 {
		return nil
	}
	all, crossovers := seriesOf(results), crossoversOf(results)
	x := sizeAxis(all, 6)
	var b strings.Builder
	for i, p := range panels() {
		g := grid{x: x, y: valueAxis(all, p)}
		for _, s := range all {
			if s.fitted {
				g.curve(func(bytes float64) float64 { return p.fit(s.fit, bytes) })
			}
		}
		for i, s := range all {
			for _, r := range s.results {
				g.mark(float64(r.Bytes), p.value(r), marks()[i%len(marks())])
			}
			if knee := s.fit.Knee(); s.fitted && knee > 0 {
				g.mark(knee, p.fit(s.fit, knee), 'K')
			}
		}
		if i == 0 {
			for _, c := range crossovers {
				g.mark(c.Bytes, c.Time, 'X')
			}
		}
		fmt.Fprintf(&b, "\n%*s %s\n", terminalMargin, "", p.title)
		g.write(&b, p)
	}
	b.WriteByte('\n')
	for i, s := range all {
		fmt.Fprintf(&b, "%*s %c %s\n", terminalMargin, "", marks()[i%len(marks())], s.name)
	}
	fmt.Fprintf(&b, "%*s ⠒ fitted line", terminalMargin, "")
	if len(crossovers) > 0 {
		b.WriteString(", X crossover")
	}
	b.WriteString(", K knee\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// grid is a diagram of characters: braille dots, two by four in each, under
// marks.
type grid struct {
	x, y  axis
	dots  [terminalRows][terminalColumns]byte
	marks [terminalRows][terminalColumns]rune
}

// place finds the dot of a point; ok is false outside the diagram.
func (g *grid) place(x, y float64) (column, row int, ok bool) {
	column = int(math.Round(g.x.at(x) * (2*terminalColumns - 1)))
	row = int(math.Round((1 - g.y.at(y)) * (4*terminalRows - 1)))
	return column, row, column >= 0 && column < 2*terminalColumns && row >= 0 && row < 4*terminalRows
}

func (g *grid) mark(x, y float64, mark rune) {
	if column, row, ok := g.place(x, y); ok {
		g.marks[row/4][column/2] = mark
	}
}

// curve sets a dot in every second column.
func (g *grid) curve(f func(x float64) float64) {
	// The dots' bits by row and column, as Unicode orders them.
	bits := [4][2]byte{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
	for i := range 2 * terminalColumns {
		x := g.x.low * pow(g.x.high/g.x.low, float64(i)/(2*terminalColumns-1))
		if column, row, ok := g.place(x, f(x)); ok {
			g.dots[row/4][column/2] |= bits[row%4][column%2]
		}
	}
}

func (g *grid) write(b *strings.Builder, p panel) {
	labels := map[int]string{}
	for _, v := range g.y.ticks {
		if _, row, ok := g.place(g.x.low, v); ok {
			labels[row/4] = shortLabel(p, v)
		}
	}
	for row := range terminalRows {
		edge := "│"
		if labels[row] != "" {
			edge = "┤"
		}
		fmt.Fprintf(b, "%*s %s", terminalMargin-2, labels[row], edge)
		var line []rune
		for column := range terminalColumns {
			r := g.marks[row][column]
			if r == 0 {
				r = ' '
				if dots := g.dots[row][column]; dots != 0 {
					r = 0x2800 + rune(dots)
				}
			}
			line = append(line, r)
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	ruler := []rune(strings.Repeat("─", terminalColumns))
	names := []rune(strings.Repeat(" ", terminalColumns+8))
	for _, v := range g.x.ticks {
		column := int(math.Round(g.x.at(v)*(2*terminalColumns-1))) / 2
		ruler[column] = '┬'
		name := []rune(FormatSize(int(v)))
		copy(names[max(column-len(name)/2, 0):], name)
	}
	fmt.Fprintf(b, "%*s └%s\n%*s  %s\n", terminalMargin-2, "", string(ruler), terminalMargin-2, "", strings.TrimRight(string(names), " "))
}
