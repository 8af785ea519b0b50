package plan

import "time"

// Link is what a message costs on a class of links.
type Link struct {
	Latency        time.Duration // until a first byte arrives
	PerMessage     time.Duration // that a message occupies sender and receiver
	BytesPerSecond float64
}

// Links is what a cost is reckoned with. The zero value stands for ranks of one
// host.
type Links struct {
	// Hosts lists the ranks by host; nil: one host.
	Hosts [][]int
	// Inside and Across are the links of ranks of one host and of two. Zero
	// fields: 5 us, 2 us, 4 GB/s inside; 30 us, 5 us, 1.1 GB/s across.
	Inside, Across Link
	// ReduceBytesPerSecond is how fast a rank reduces what it received. 0:
	// 8 GB/s.
	ReduceBytesPerSecond float64
}

func (l Links) withDefaults() Links {
	fill := func(link *Link, latency, message time.Duration, rate float64) {
		if link.Latency == 0 {
			link.Latency = latency
		}
		if link.PerMessage == 0 {
			link.PerMessage = message
		}
		if link.BytesPerSecond == 0 {
			link.BytesPerSecond = rate
		}
	}
	fill(&l.Inside, 5*time.Microsecond, 2*time.Microsecond, 4e9)
	fill(&l.Across, 30*time.Microsecond, 5*time.Microsecond, 1.1e9)
	if l.ReduceBytesPerSecond == 0 {
		l.ReduceBytesPerSecond = 8e9
	}
	return l
}

// Cost estimates how long p takes for vectors of that many bytes, cut equally.
// A round takes the longest latency in it, and then as long as its busiest rank
// sends or receives, whichever is more: per message PerMessage + bytes / rate,
// and bytes / reduce rate for a reduction. Rounds follow each other, which
// overestimates plans whose ranks drift apart.
func (p Plan) Cost(links Links, bytes int) time.Duration {
	links = links.withDefaults()
	host := make([]int, p.Ranks)
	for h, ranks := range links.Hosts {
		for _, r := range ranks {
			if r < p.Ranks {
				host[r] = h
			}
		}
	}
	bounds := Cut(bytes, p.Chunks)
	sending, receiving := make([]float64, p.Ranks), make([]float64, p.Ranks)
	total := 0.0
	for round := range p.Rounds {
		clear(sending)
		clear(receiving)
		latency, busiest := 0.0, 0.0
		for _, m := range round {
			size := float64(bounds[m.Src+m.N] - bounds[m.Src])
			reduce := 0.0
			if m.Reduce {
				reduce = size / links.ReduceBytesPerSecond
			}
			if m.From == m.To {
				receiving[m.To] += reduce + size/links.ReduceBytesPerSecond
				busiest = max(busiest, receiving[m.To])
				continue
			}
			link := links.Inside
			if host[m.From] != host[m.To] {
				link = links.Across
			}
			busy := link.PerMessage.Seconds() + size/link.BytesPerSecond
			sending[m.From] += busy
			receiving[m.To] += busy + reduce
			latency = max(latency, link.Latency.Seconds())
			busiest = max(busiest, sending[m.From], receiving[m.To])
		}
		total += latency + busiest
	}
	return time.Duration(total * float64(time.Second))
}

// Choose returns the cheapest algorithm for vectors of that many bytes; the
// first listed wins a tie. All ranks choose alike when they know the same links.
func Choose(k Kind, ranks, bytes int, links Links) Algorithm {
	if k == AllToAll { // its chunks hold what is sent and what is received
		bytes *= 2
	}
	var best Algorithm
	var least time.Duration
	for _, a := range Algorithms() {
		if !a.Does(k) {
			continue
		}
		cost := a.Plan(k, ranks, 0).Cost(links, bytes)
		if best.Name == "" || cost < least {
			best, least = a, cost
		}
	}
	return best
}
