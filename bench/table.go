package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Table writes results as they come, aligned, and after each operation and type
// what they amount to. The zero value is not usable; see NewTable.
type Table struct {
	out    io.Writer
	limits bool
	group  []Result // of the present operation and type
}

// NewTable writes to out. limits adds a column for Result.Limit.
func NewTable(out io.Writer, limits bool) *Table { return &Table{out: out, limits: limits} }

// Add writes one result, after a heading where operation or type change.
func (t *Table) Add(r Result) error {
	var b strings.Builder
	if len(t.group) > 0 && (t.group[0].Op != r.Op || t.group[0].DType != r.DType) {
		t.conclude(&b)
		b.WriteByte('\n')
		t.group = t.group[:0]
	}
	if len(t.group) == 0 {
		t.head(&b, r)
	}
	t.group = append(t.group, r)
	t.row(&b, r)
	_, err := io.WriteString(t.out, b.String())
	return err
}

// Close writes what the last results amount to.
func (t *Table) Close() error {
	var b strings.Builder
	t.conclude(&b)
	t.group = nil
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (t *Table) head(b *strings.Builder, r Result) {
	memory := "ordinary memory"
	if r.Registered {
		memory = "registered memory"
	}
	title := r.Op
	if o, err := ParseOperation(r.Op); err == nil {
		title = o.title()
	}
	fmt.Fprintf(b, "%s of %s, %s over %s, %s\n", title, r.DType, count(r.Ranks, "rank"), r.Transport, memory)
	fmt.Fprintf(b, "%11s  %-18s %6s %10s %10s %12s %12s", "size", "algorithm", "iters", "median", "best", "algbw", "busbw")
	if t.limits {
		fmt.Fprintf(b, " %10s %8s", "limit", "of limit")
	}
	b.WriteString("  correct\n")
}

func (t *Table) row(b *strings.Builder, r Result) {
	correct := "yes"
	if !r.Correct {
		correct = "NO"
	}
	fmt.Fprintf(b, "%11s  %-18s %6d %10s %10s %12s %12s", FormatSize(r.Bytes), r.Algorithm, r.Iterations,
		formatTime(r.P50), formatTime(r.Best), formatRate(r.AlgBW), formatRate(r.BusBW))
	if t.limits {
		limit, share := "", ""
		if r.Limit > 0 {
			limit, share = formatTime(r.Limit), fmt.Sprintf("%.2f", r.Limit/r.Best)
		}
		fmt.Fprintf(b, " %10s %8s", limit, share)
	}
	fmt.Fprintf(b, "  %s\n", correct)
}

func formatRate(gbps float64) string {
	if gbps == 0 {
		return "-"
	}
	if gbps < 1 {
		return digits(gbps*1e3) + " MB/s"
	}
	return digits(gbps) + " GB/s"
}

// count writes "1 rank", "2 ranks".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// conclude writes the fitted lines and the crossovers of a group.
func (t *Table) conclude(b *strings.Builder) {
	for _, s := range seriesOf(t.group) {
		if !s.fitted {
			continue
		}
		fmt.Fprintf(b, "%s: %s\n", s.results[0].Algorithm, s.fit)
	}
	for _, c := range Crossovers(t.group) {
		fmt.Fprintf(b, "crossover at %s: %s below, %s above\n", roughSize(c.Bytes), c.Below, c.Above)
	}
	for _, r := range t.group {
		if r.Waiting != nil {
			fmt.Fprintf(b, "beside a waiting call of %s a computation takes %+.1f %% longer\n", FormatSize(r.Bytes), *r.Waiting)
		}
	}
	if t.limits && slices.ContainsFunc(t.group, func(r Result) bool { return r.Limit > 0 }) {
		b.WriteString("limit: all ranks read and write the size once, each in its own memory; of limit: limit / best\n")
	}
}

// String is the line in words.
func (f Fit) String() string {
	if math.IsInf(f.Bandwidth, 0) {
		return "time fits " + formatTime(f.Latency) + " whatever the size"
	}
	text := fmt.Sprintf("time fits %s + size / %s", formatTime(f.Latency), formatRate(f.Bandwidth))
	if f.Knee() > 0 {
		text += ", knee at " + roughSize(f.Knee())
	}
	return text
}
