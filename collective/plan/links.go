package plan

import (
	"fmt"
	"math"
	"time"
)

// Link is what a message costs on a class of links: Latency + PerMessage +
// bytes / BytesPerSecond, of which sender and receiver are busy for all but the
// latency.
type Link struct {
	Latency        time.Duration // alpha: until a first byte arrives
	PerMessage     time.Duration // that a message occupies sender and receiver
	BytesPerSecond float64       // 1 / beta
}

// String is "60µs + 5µs a message + 1.2 GB/s".
func (l Link) String() string {
	rate := fmt.Sprintf("%.3g MB/s", l.BytesPerSecond/1e6)
	if l.BytesPerSecond >= 1e9 {
		rate = fmt.Sprintf("%.3g GB/s", l.BytesPerSecond/1e9)
	}
	return fmt.Sprintf("%v + %v a message + %s", l.Latency, l.PerMessage, rate)
}

// Rounded is l with two digits of each figure, so that measurements that differ
// by noise only are mostly equal.
func (l Link) Rounded() Link {
	round := func(x float64) float64 {
		if !(x > 0) {
			return 0
		}
		unit := math.Pow(10, math.Floor(math.Log10(x))-1)
		return math.Round(x/unit) * unit
	}
	return Link{time.Duration(round(float64(l.Latency))), time.Duration(round(float64(l.PerMessage))), round(l.BytesPerSecond)}
}

// Links is what a cost is reckoned with. A zero field stands for its default.
type Links struct {
	Process Link // of ranks of one process: 1 us, 1 us, 8 GB/s
	Host    Link // of processes of one host: 5 us, 2 us, 4 GB/s
	// Across is the link of two hosts: 30 us, 5 us, 1.1 GB/s. Its rate is a
	// host's, in each direction, shared by the host's ranks.
	Across Link
	// ReduceBytesPerSecond is 1 / gamma: how fast a rank reduces what it
	// received, or copies within its own memory. 8 GB/s.
	ReduceBytesPerSecond float64
}

func (l Links) withDefaults() Links {
	fill := func(link *Link, latency, message time.Duration, rate float64) {
		if *link == (Link{}) {
			*link = Link{latency, message, rate}
		}
		if link.BytesPerSecond == 0 {
			link.BytesPerSecond = rate
		}
	}
	fill(&l.Process, time.Microsecond, time.Microsecond, 8e9)
	fill(&l.Host, 5*time.Microsecond, 2*time.Microsecond, 4e9)
	fill(&l.Across, 30*time.Microsecond, 5*time.Microsecond, 1.1e9)
	if l.ReduceBytesPerSecond == 0 {
		l.ReduceBytesPerSecond = 8e9
	}
	return l
}

// Sample is a measurement of one link: how long it took from the first send
// until the last of Messages messages, sent at once and of Bytes bytes each, had
// arrived.
type Sample struct {
	Messages, Bytes int
	Time            time.Duration
}

// Fit finds the link under which samples are most likely: the least squares of
// relative errors of Latency + Messages x (PerMessage + Bytes/BytesPerSecond),
// none below zero. Relative, because a microsecond matters to a small message
// and not to a large one. When all samples have as many messages, PerMessage
// cannot be told from Latency and is taken to be a third of the constant.
func Fit(samples []Sample) (Link, error) {
	sizes, counts := map[int]bool{}, map[int]bool{}
	for i, s := range samples {
		if s.Messages < 1 || s.Bytes < 0 || s.Time <= 0 {
			return Link{}, fmt.Errorf("sample %d: %d messages of %d bytes in %v", i, s.Messages, s.Bytes, s.Time)
		}
		sizes[s.Messages*s.Bytes], counts[s.Messages] = true, true
	}
	if len(sizes) < 2 {
		return Link{}, fmt.Errorf("samples of %d different sizes do not tell latency from rate", len(sizes))
	}
	free := []bool{true, len(counts) > 1, true}
	x := leastSquares(samples, free)
	for _, i := range []int{1, 0} { // a negative time is noise: leave it out
		if x[i] < 0 {
			free[i] = false
			x = leastSquares(samples, free)
		}
	}
	if !(x[2] > 0) || math.IsInf(x[2], 0) {
		return Link{}, fmt.Errorf("the time of these samples does not grow with their size")
	}
	latency, message := x[0], x[1]
	if len(counts) == 1 {
		for n := range counts { // latency + n x message is the constant
			message = latency / 3 / float64(n)
			latency -= latency / 3
		}
	}
	seconds := func(s float64) time.Duration {
		return time.Duration(math.Round(max(s, 0) * float64(time.Second)))
	}
	return Link{Latency: seconds(latency), PerMessage: seconds(message), BytesPerSecond: 1 / x[2]}, nil
}

// leastSquares solves the normal equations for the three free factors, in
// seconds: per sample, per message, per byte.
func leastSquares(samples []Sample, free []bool) [3]float64 {
	var a [3][4]float64
	for _, s := range samples {
		t := s.Time.Seconds()
		row := [4]float64{1 / t, float64(s.Messages) / t, float64(s.Messages) * float64(s.Bytes) / t, 1}
		for i := range 3 {
			for j := range 4 {
				if free[i] && (j == 3 || free[j]) {
					a[i][j] += row[i] * row[j]
				}
			}
		}
	}
	for i := range 3 {
		if !free[i] {
			a[i][i] = 1
		}
	}
	for i := range 3 { // Gauss and Jordan; the matrix is positive definite
		for j := range 3 {
			if j == i {
				continue
			}
			f := a[j][i] / a[i][i]
			for k := range 4 {
				a[j][k] -= f * a[i][k]
			}
		}
	}
	return [3]float64{a[0][3] / a[0][0], a[1][3] / a[1][1], a[2][3] / a[2][2]}
}
