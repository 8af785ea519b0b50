package bench

import (
	"math"
	"slices"
)

// series is what one line of a chart shows.
type series struct {
	name    string
	results []Result // by size
	fit     Fit
	fitted  bool
}

// seriesOf groups results by operation, type and algorithm, in the order of
// their first. Names leave out what all have in common.
func seriesOf(results []Result) []series {
	var all []series
	same := func(a, b Result) bool { return a.Op == b.Op && a.DType == b.DType && a.Algorithm == b.Algorithm }
	for _, r := range results {
		i := slices.IndexFunc(all, func(s series) bool { return same(s.results[0], r) })
		if i < 0 {
			i = len(all)
			all = append(all, series{})
		}
		all[i].results = append(all[i].results, r)
	}
	var ops, types, algorithms bool
	for i := range all {
		s := &all[i]
		slices.SortStableFunc(s.results, func(a, b Result) int { return a.Bytes - b.Bytes })
		s.fit, s.fitted = FitLine(s.results)
		a, b := all[0].results[0], s.results[0]
		ops, types, algorithms = ops || a.Op != b.Op, types || a.DType != b.DType, algorithms || a.Algorithm != b.Algorithm
	}
	for i := range all {
		s, r := &all[i], all[i].results[0]
		for _, word := range []struct {
			differs bool
			text    string
		}{{ops, r.Op}, {types, r.DType}, {algorithms || !ops && !types, r.Algorithm}} {
			if word.differs && s.name != "" {
				s.name += " "
			}
			if word.differs {
				s.name += word.text
			}
		}
	}
	return all
}

// crossoversOf finds the crossovers of each operation and type.
func crossoversOf(results []Result) (all []Crossover) {
	type group struct{ op, dtype string }
	var order []group
	members := map[group][]Result{}
	for _, r := range results {
		g := group{r.Op, r.DType}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], r)
	}
	for _, g := range order {
		all = append(all, Crossovers(members[g])...)
	}
	return all
}

// panel is one of a chart's diagrams, over size, both axes logarithmic.
type panel struct {
	title string
	label func(v float64) string
	value func(r Result) float64
	fit   func(f Fit, bytes float64) float64
}

func panels() []panel {
	return []panel{
		{"time", formatTime, func(r Result) float64 { return r.P50 }, Fit.at},
		{"bandwidth (size / time)", formatRate, func(r Result) float64 { return r.AlgBW },
			func(f Fit, bytes float64) float64 { return bytes / f.at(bytes) / 1e3 }},
	}
}

// axis maps values to [0, 1] by their logarithms.
type axis struct {
	low, high float64
	ticks     []float64
}

func (a axis) at(v float64) float64 { return math.Log(v/a.low) / math.Log(a.high/a.low) }

// sizeAxis spans the sizes of all series, with a tick every few powers of two.
func sizeAxis(all []series, ticks int) axis {
	a := spanned(all, func(r Result) float64 { return float64(r.Bytes) }, 2)
	low, high := math.Log2(a.low), math.Log2(a.high)
	step := math.Ceil((high - low + 1) / float64(ticks))
	for k := math.Ceil(low); k <= high; k += step {
		a.ticks = append(a.ticks, math.Exp2(k))
	}
	return a
}

// valueAxis spans a panel's values, with a tick every power of ten.
func valueAxis(all []series, p panel) axis {
	a := spanned(all, p.value, 10)
	for k := math.Round(math.Log10(a.low)); k <= math.Log10(a.high)+1e-9; k++ {
		a.ticks = append(a.ticks, math.Pow(10, k))
	}
	return a
}

// spanned makes an axis from whole powers of base around all values above 0.
func spanned(all []series, value func(Result) float64, base float64) axis {
	low, high := math.Inf(1), 0.0
	for _, s := range all {
		for _, r := range s.results {
			if v := value(r); v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high == 0 {
		low, high = 1, 1
	}
	scale := math.Log(base)
	a := axis{low: math.Pow(base, math.Floor(math.Log(low)/scale+1e-9)), high: math.Pow(base, math.Ceil(math.Log(high)/scale-1e-9))}
	if a.high <= a.low {
		a.high = a.low * base
	}
	return a
}

// shown are the results that can stand on logarithmic axes.
func shown(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Bytes <= 0 || r.P50 <= 0 })
}
