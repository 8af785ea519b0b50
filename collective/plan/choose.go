package plan

import "math"

// Choose returns the algorithm with the lowest Cost for k on vectors of that
// many bytes (AllToAll: that a rank sends), segmented where that pays; the first
// listed wins a tie. All ranks choose alike when they know the same world and
// links.
func Choose(k Kind, w World, bytes int, links Links) Algorithm {
	c := chooser{k: k, w: w, bytes: bytes, links: links, least: math.Inf(1)}
	switch k {
	case AllToAll: // its chunks hold what is sent and what is received
		c.bytes *= 2
	case Barrier: // its chunk holds nothing
		c.bytes = 0
	}
	for _, a := range Algorithms() {
		if !a.Does(k) || a.Sized != nil || a.ByHost && w.Flat() || a.Crowded && c.crowd() > c.least || a.UpTo > 0 && bytes > a.UpTo {
			continue
		}
		c.try(a)
		if a.Pipelines && k != Barrier {
			c.segments(a)
		}
	}
	return c.best
}

// Ladder returns what Choose takes for k by size, from 1 KiB to 1 GiB in steps of
// four, as a Selection that could be configured.
func Ladder(k Kind, w World, links Links) Selection {
	r := rule{kind: k}
	for bytes := 1 << 10; bytes <= 1<<30; bytes *= 4 {
		a := Choose(k, w, bytes, links)
		if last := len(r.ladder) - 1; last >= 0 && r.ladder[last].algorithm.Name == a.Name {
			r.ladder[last].upTo = bytes
			continue
		}
		r.ladder = append(r.ladder, rung{a, bytes})
	}
	r.ladder[len(r.ladder)-1].upTo = math.MaxInt
	return Selection{[]rule{r}}
}

// Segments have minSegment bytes at least, because below the messages' fixed
// costs prevail, and there are mostSegments at most, beyond which a pipeline gains
// little and costs much to price.
const (
	minSegment   = 4 << 10
	mostSegments = 256
)

type chooser struct {
	k     Kind
	w     World
	bytes int
	links Links
	best  Algorithm
	least float64
}

// crowd is the least time, in seconds, that a crowded algorithm takes.
func (c *chooser) crowd() float64 {
	links := c.links.withDefaults()
	message := min(links.Host.PerMessage, links.Across.PerMessage)
	if c.w.Processes != nil {
		message = min(message, links.Process.PerMessage)
	}
	if c.k == AllReduce {
		message *= 2
	}
	return float64(c.w.Ranks-1) * message.Seconds()
}

// try prices an algorithm and reports whether it is the best so far.
func (c *chooser) try(a Algorithm) bool {
	cost, within := a.Plan(c.k, c.w, 0).cost(c.w, c.links, c.bytes, c.least)
	if !within || cost >= c.least {
		return false
	}
	c.best, c.least = a, cost
	return true
}

// segments tries a in ever more segments, as long as that pays.
func (c *chooser) segments(a Algorithm) {
	chunks := a.Plan(c.k, c.w, 0).Chunks
	first := true
	for n := 4; n <= mostSegments && c.bytes/(chunks*n) >= minSegment; n *= 4 {
		// The first step may be too small to overtake another algorithm.
		if !c.try(a.Segmented(n)) && !first {
			return
		}
		first = false
	}
}
