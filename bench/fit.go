package bench

import (
	"cmp"
	"math"
	"slices"
)

// Fit is the line time = Latency + bytes / Bandwidth.
type Fit struct {
	Latency   float64 // microseconds
	Bandwidth float64 // GB/s; +Inf where time does not grow with size
}

// Knee is the size in bytes at which latency and transfer take equally long:
// half of Bandwidth is reached there. 0 where one of them is nothing.
func (f Fit) Knee() float64 {
	if math.IsInf(f.Bandwidth, 0) {
		return 0
	}
	return f.Latency * f.Bandwidth * 1e3
}

// at is the line's time for a size, in microseconds.
func (f Fit) at(bytes float64) float64 { return f.Latency + bytes/f.Bandwidth/1e3 }

// FitLine finds the line of least squares through the results' medians. The
// squares are of relative deviations, so that small sizes count as much as
// large ones; neither term is negative. ok is false for fewer than three sizes.
func FitLine(results []Result) (f Fit, ok bool) {
	var sizes []int
	var sw, sx, sy, sxx, sxy float64
	for _, r := range results {
		if r.P50 <= 0 {
			continue
		}
		x, w := float64(r.Bytes), 1/(r.P50*r.P50)
		sw, sx, sy, sxx, sxy = sw+w, sx+w*x, sy+w*r.P50, sxx+w*x*x, sxy+w*x*r.P50
		if !slices.Contains(sizes, r.Bytes) {
			sizes = append(sizes, r.Bytes)
		}
	}
	if len(sizes) < 3 {
		return Fit{}, false
	}
	slope := (sw*sxy - sx*sy) / (sw*sxx - sx*sx)
	start := (sy - slope*sx) / sw
	switch {
	case slope < 0:
		slope, start = 0, sy/sw
	case start < 0:
		slope, start = sxy/sxx, 0
	}
	return Fit{Latency: start, Bandwidth: 1 / slope / 1e3}, true
}

// Crossover is where one algorithm overtakes another, reckoned from the
// measured sizes around it.
type Crossover struct {
	Bytes        float64
	Below, Above string // the fastest up to there, and from there on
	Time         float64
}

// Crossovers finds the sizes at which the fastest algorithm changes. The
// results are of one operation and type.
func Crossovers(results []Result) []Crossover {
	bySize := map[int]map[string]float64{}
	for _, r := range results {
		if bySize[r.Bytes] == nil {
			bySize[r.Bytes] = map[string]float64{}
		}
		if r.P50 > 0 {
			bySize[r.Bytes][r.Algorithm] = r.P50
		}
	}
	sizes := make([]int, 0, len(bySize))
	for size := range bySize {
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	var out []Crossover
	for i := 1; i < len(sizes); i++ {
		lower, upper := bySize[sizes[i-1]], bySize[sizes[i]]
		a, b := fastest(lower), fastest(upper)
		if a == b || lower[b] == 0 || upper[a] == 0 || sizes[i-1] == 0 {
			continue
		}
		// Between two sizes time is taken for a power of the size.
		before, after := math.Log(lower[b]/lower[a]), math.Log(upper[a]/upper[b])
		share := 0.5
		if before+after > 0 {
			share = before / (before + after)
		}
		x := float64(sizes[i-1]) * math.Pow(float64(sizes[i])/float64(sizes[i-1]), share)
		time := lower[a] * math.Pow(upper[a]/lower[a], share)
		out = append(out, Crossover{Bytes: x, Below: a, Above: b, Time: time})
	}
	return out
}

// fastest is the algorithm of the least time; the first by name of equals.
func fastest(times map[string]float64) string {
	names := make([]string, 0, len(times))
	for name := range times {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int { return cmp.Compare(times[a], times[b]) })
}
