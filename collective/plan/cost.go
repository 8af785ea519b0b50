package plan

import (
	"math"
	"time"
)

// Cost estimates how long p takes for vectors of that many bytes, cut equally.
//
// Every rank has a clock; a round moves the clocks of its ranks only, so that
// ranks may drift apart as they do in fact. A message occupies its sender, then
// a latency later its receiver, for PerMessage + bytes / rate; both handle one
// message at a time in each direction, in list order. Messages across hosts
// also queue for their hosts' network interfaces, out and in, which are shared
// by all ranks of a host. A reduction keeps the receiver busy for longer. (The
// model is LogGP of Alexandrov and others, 1995, with shared interfaces.)
func (p Plan) Cost(w World, links Links, bytes int) time.Duration {
	seconds, _ := p.cost(w, links, bytes, math.Inf(1))
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// cost is Cost in seconds; it gives up when that exceeds limit.
func (p Plan) cost(w World, links Links, bytes int, limit float64) (seconds float64, within bool) {
	m := newMeter(p, w, links, bytes)
	for round := range p.Rounds {
		for i := range round {
			m.move(&round[i])
		}
		for i := range round {
			if end := m.settle(&round[i]); end > m.end {
				m.end = end
			}
		}
		if m.end > limit {
			return m.end, false
		}
	}
	return m.end, true
}

// meter is the state of an estimate, in seconds.
type meter struct {
	bounds        []int
	host, process []int
	clock         []float64 // of each rank, before the round
	out, in       []float64 // when a rank's sending and receiving side is free
	sends, takes  []float64 // the same of a host's network interface
	classes       [3]rate
	reduce        float64 // per byte
	end           float64
}

type rate struct{ latency, message, byte float64 }

func newMeter(p Plan, w World, links Links, bytes int) *meter {
	links = links.withDefaults()
	m := &meter{bounds: Cut(bytes, p.Chunks), host: make([]int, p.Ranks), process: span(p.Ranks), reduce: 1 / links.ReduceBytesPerSecond}
	if w.Hosts != nil {
		m.host = places(p.Ranks, w.Hosts)
	}
	if w.Processes != nil {
		m.process = places(p.Ranks, w.Processes)
	}
	for i, l := range []Link{links.Process, links.Host, links.Across} {
		m.classes[i] = rate{l.Latency.Seconds(), l.PerMessage.Seconds(), 1 / l.BytesPerSecond}
	}
	clocks := make([]float64, 3*p.Ranks+2*max(1, len(w.Hosts)))
	for _, c := range []*[]float64{&m.clock, &m.out, &m.in} {
		*c, clocks = clocks[:p.Ranks], clocks[p.Ranks:]
	}
	m.sends, m.takes = clocks[:len(clocks)/2], clocks[len(clocks)/2:]
	return m
}

const (
	sameProcess = iota
	sameHost
	acrossHosts
)

func (m *meter) class(from, to int) int {
	switch {
	case m.host[from] != m.host[to]:
		return acrossHosts
	case m.process[from] != m.process[to]:
		return sameHost
	}
	return sameProcess
}

// move books a message on the ports that it uses.
func (m *meter) move(v *Move) {
	size := float64(m.bounds[v.Src+v.N] - m.bounds[v.Src])
	reduce := 0.0
	if v.Reduce {
		reduce = size * m.reduce
	}
	if v.From == v.To {
		m.in[v.To] = max(m.in[v.To], m.clock[v.To]) + max(reduce, size*m.reduce)
		return
	}
	class := m.class(v.From, v.To)
	r := &m.classes[class]
	wire := size * r.byte
	start := max(m.out[v.From], m.clock[v.From])
	if class == acrossHosts {
		h := m.host[v.From]
		start = max(start, m.sends[h])
		m.sends[h] = start + wire
	}
	m.out[v.From] = start + r.message + wire
	arrival := max(m.in[v.To], m.clock[v.To], start+r.latency)
	if class == acrossHosts {
		h := m.host[v.To]
		arrival = max(arrival, m.takes[h])
		m.takes[h] = arrival + wire
	}
	m.in[v.To] = arrival + r.message + wire + reduce
}

// settle ends a round for the ranks of a move and returns the later one's time.
func (m *meter) settle(v *Move) float64 {
	m.clock[v.From] = max(m.clock[v.From], m.out[v.From])
	m.clock[v.To] = max(m.clock[v.To], m.in[v.To])
	return max(m.clock[v.From], m.clock[v.To])
}

// Traffic returns how many bytes p sends between hosts for vectors of that many
// bytes, cut equally.
func (p Plan) Traffic(w World, bytes int) int64 {
	host := places(p.Ranks, w.hosts())
	bounds := Cut(bytes, p.Chunks)
	total := int64(0)
	for round := range p.Rounds {
		for _, m := range round {
			if host[m.From] != host[m.To] {
				total += int64(bounds[m.Src+m.N] - bounds[m.Src])
			}
		}
	}
	return total
}
