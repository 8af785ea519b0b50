package bench

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The picture's measures, in pixels.
const (
	pictureWidth, pictureHeight = 1080, 480
	panelWidth, panelHeight     = 420, 320
	panelLeft, panelTop         = 90, 70
	panelApart                  = 120
)

// colours that stay apart for the colour-blind (Okabe and Ito 2008), darkest
// first.
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"}
}

// WriteSVG draws time and bandwidth over size on logarithmic axes: measured
// medians, the fitted lines (dashed), their knees (a ring and a thin line down)
// and the crossovers of algorithms (a diamond). The picture is written by hand,
// not by a plotting library: it has two diagrams, and such a library would take
// longer to compile than the rest of the program.
func WriteSVG(w io.Writer, results []Result) error {
	results = shown(results)
	if len(results) == 0 {
		return fmt.Errorf("nothing to draw: no result has a size and a time")
	}
	d := &drawing{all: seriesOf(results), crossovers: crossoversOf(results)}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, pictureHeight)
	d.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	d.text(panelLeft, 28, "start", "font-size=\"16\"", heading(results))
	d.x = sizeAxis(d.all, 8)
	for i, p := range panels() {
		d.left = float64(panelLeft + i*(panelWidth+panelApart))
		d.panel(p)
	}
	d.legend()
	d.printf("</svg>\n")
	_, err := io.WriteString(w, d.b.String())
	return err
}

// heading says what all results have in common.
func heading(results []Result) string {
	r := results[0]
	op, dtype := r.Op, r.DType
	for _, other := range results {
		if other.Op != op {
			op = "collectives"
		}
		if other.DType != dtype {
			dtype = ""
		}
	}
	if o, err := ParseOperation(op); err == nil {
		op = o.title()
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s, %s over %s", op, dtype, count(r.Ranks, "rank"), r.Transport)), " ")
}

// drawing is a picture that grows.
type drawing struct {
	b          strings.Builder
	all        []series
	crossovers []Crossover
	left       float64 // of the present panel
	x, y       axis
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

func (d *drawing) px(bytes float64) float64 { return d.left + d.x.at(bytes)*panelWidth }
func (d *drawing) py(v float64) float64     { return panelTop + (1-d.y.at(v))*panelHeight }

func (d *drawing) text(x, y float64, anchor, more, text string) {
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" %s>`, x, y, anchor, more)
	xml.EscapeText(&d.b, []byte(text)) // a Builder does not fail
	d.printf("</text>\n")
}

func (d *drawing) panel(p panel) {
	d.y = valueAxis(d.all, p)
	d.text(d.left, panelTop-12, "start", `font-weight="bold"`, p.title)
	for _, v := range d.y.ticks {
		d.printf(`<path d="M%.1f %.1fh%d" stroke="#dddddd"/>`+"\n", d.left, d.py(v), panelWidth)
		d.text(d.left-8, d.py(v)+4, "end", "", shortLabel(p, v))
	}
	for _, v := range d.x.ticks {
		d.printf(`<path d="M%.1f %dv%d" stroke="#eeeeee"/>`+"\n", d.px(v), panelTop, panelHeight)
		d.text(d.px(v), panelTop+panelHeight+18, "middle", "", FormatSize(int(v)))
	}
	d.printf(`<rect x="%.1f" y="%d" width="%d" height="%d" fill="none" stroke="#666666"/>`+"\n", d.left, panelTop, panelWidth, panelHeight)
	for i, s := range d.all {
		colour := colours()[i%len(colours())]
		d.fitted(p, s, colour, i)
		d.measured(p, s, colour)
	}
	if p.title == panels()[0].title {
		for _, c := range d.crossovers {
			x, y := d.px(c.Bytes), d.py(c.Time)
			d.printf(`<path d="M%.1f %.1fl6 6l-6 6l-6 -6z" fill="white" stroke="#000000"/>`+"\n", x, y-6)
			d.text(x+9, y+14, "start", `font-size="11"`, roughSize(c.Bytes))
		}
	}
}

// shortLabel writes a power of ten without needless digits.
func shortLabel(p panel, v float64) string {
	number, unit, _ := strings.Cut(p.label(v), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

// measured draws the medians and what joins them.
func (d *drawing) measured(p panel, s series, colour string) {
	var path strings.Builder
	for i, r := range s.results {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], d.px(float64(r.Bytes)), d.py(p.value(r)))
	}
	d.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(), colour)
	for _, r := range s.results {
		d.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s, %s</title></circle>`+"\n",
			d.px(float64(r.Bytes)), d.py(p.value(r)), colour, FormatSize(r.Bytes), formatTime(r.P50), formatRate(r.AlgBW))
	}
}

// fitted draws a series' line, which is a curve on these axes, and its knee. The
// labels of knees stand above each other at the bottom.
func (d *drawing) fitted(p panel, s series, colour string, place int) {
	if !s.fitted {
		return
	}
	const steps = 48
	var path strings.Builder
	pen := byte('M')
	for i := range steps + 1 {
		x := d.x.low * pow(d.x.high/d.x.low, float64(i)/steps)
		v := p.fit(s.fit, x)
		if v < d.y.low || v > d.y.high {
			continue
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", pen, d.px(x), d.py(v))
		pen = 'L'
	}
	if pen == 'L' {
		d.printf(`<path d="%s" fill="none" stroke="%s" stroke-dasharray="4 4"/>`+"\n", path.String(), colour)
	}
	knee := s.fit.Knee()
	if v := p.fit(s.fit, knee); knee >= d.x.low && knee <= d.x.high && v >= d.y.low && v <= d.y.high {
		d.printf(`<path d="M%.1f %.1fV%d" stroke="%s" stroke-dasharray="1 3"/>`+"\n", d.px(knee), d.py(v), panelTop+panelHeight, colour)
		d.printf(`<circle cx="%.1f" cy="%.1f" r="5" fill="white" stroke="%s"/>`+"\n", d.px(knee), d.py(v), colour)
		d.text(d.px(knee)+4, float64(panelTop+panelHeight-6-13*place), "start", fmt.Sprintf(`font-size="11" fill="%s"`, colour), "knee "+roughSize(knee))
	}
}

func (d *drawing) legend() {
	x, y := float64(panelLeft), float64(panelTop+panelHeight+44)
	for i, s := range d.all {
		text := s.name
		if s.fitted {
			text += ": " + s.fit.String()
		}
		if i > 0 && i%2 == 0 {
			x, y = panelLeft, y+16
		}
		d.printf(`<rect x="%.1f" y="%.1f" width="10" height="10" fill="%s"/>`+"\n", x, y-9, colours()[i%len(colours())])
		d.text(x+16, y, "start", "", text)
		x += panelWidth + panelApart
	}
}
