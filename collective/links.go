package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// What MeasureLinks does on a link, which takes some tens of milliseconds where
// a megabyte does.
const (
	linkTag     Tag = math.MaxUint64 // no group's: those end in small numbers
	linkSmall       = 4 << 10
	linkLeast       = 256 << 10 // the first size for the rate, doubled until
	linkMost        = 32 << 20  // this is reached
	linkEnough      = 50 * time.Millisecond
	linkRepeats     = 15
)

// MeasureLinks is collective over a transport that no group uses yet. It measures
// the link between the first two hosts, and that inside the first host that has
// two ranks, and returns the same figures, of two digits, on all ranks: what
// GroupConfig.Links takes, with zero for a link of which nothing sensible could
// be measured. In a world of one host there is nothing to tell
// apart, and it returns zero Links without communicating.
func MeasureLinks(ctx context.Context, t Transport) (plan.Links, error) {
	var links plan.Links
	hosts := t.Hosts()
	if len(hosts) < 2 {
		return links, nil
	}
	probe := &linkProbe{ctx: ctx, t: t}
	// One after the other, so that neither disturbs the other.
	pairs := [][2]int{{hosts[0][0], hosts[1][0]}}
	if at := slices.IndexFunc(hosts, func(host []int) bool { return len(host) > 1 }); at >= 0 {
		pairs = append(pairs, [2]int{hosts[at][0], hosts[at][1]})
	}
	for i, into := range []*plan.Link{&links.Across, &links.Host}[:len(pairs)] {
		link, err := probe.share(pairs[i])
		if err != nil {
			return links, fmt.Errorf("rank %d measures the link of ranks %d and %d: %w", t.Rank(), pairs[i][0], pairs[i][1], err)
		}
		*into = link
	}
	return links, nil
}

// linkProbe measures links. Its memory stays, so that pages are touched first
// outside of the measurement, which is the best of several.
type linkProbe struct {
	ctx    context.Context
	t      Transport
	memory []byte
}

// share measures a pair's link; its first rank tells all.
func (p *linkProbe) share(pair [2]int) (plan.Link, error) {
	var b [24]byte
	switch p.t.Rank() {
	case pair[0]:
		link, err := p.measure(pair[1])
		if err != nil {
			return link, err
		}
		binary.LittleEndian.PutUint64(b[0:], uint64(link.Latency))
		binary.LittleEndian.PutUint64(b[8:], uint64(link.PerMessage))
		binary.LittleEndian.PutUint64(b[16:], math.Float64bits(link.BytesPerSecond))
		for r := range p.t.Size() {
			if r == pair[0] {
				continue
			}
			if err := p.t.Send(p.ctx, r, linkTag, b[:]); err != nil {
				return link, err
			}
		}
		return link, nil
	case pair[1]:
		if err := p.answer(pair[0]); err != nil {
			return plan.Link{}, err
		}
	}
	if err := p.t.Recv(p.ctx, pair[0], linkTag, b[:]); err != nil {
		return plan.Link{}, err
	}
	return plan.Link{
		Latency:        time.Duration(binary.LittleEndian.Uint64(b[0:])),
		PerMessage:     time.Duration(binary.LittleEndian.Uint64(b[8:])),
		BytesPerSecond: math.Float64frombits(binary.LittleEndian.Uint64(b[16:])),
	}, nil
}

// measure times messages to a peer that answers.
func (p *linkProbe) measure(peer int) (plan.Link, error) {
	var samples []plan.Sample
	var answer time.Duration // how long one takes
	sample := func(messages, bytes, repeats int) (time.Duration, error) {
		best := time.Duration(math.MaxInt64)
		for range repeats {
			took, err := p.trip(peer, messages, bytes)
			if err != nil {
				return 0, err
			}
			best = min(best, took)
		}
		if answer == 0 {
			answer = best / 2
		}
		// Messages take no less time than their answer, whatever was noted of that.
		took := max(best-answer, best/2, 1)
		samples = append(samples, plan.Sample{Messages: messages, Bytes: bytes, Time: took})
		return took, nil
	}
	if _, err := p.trip(peer, 8, linkSmall); err != nil { // wakes all that sleeps
		return plan.Link{}, err
	}
	for _, messages := range []int{1, 8} {
		for _, bytes := range []int{0, linkSmall} {
			if _, err := sample(messages, bytes, linkRepeats); err != nil {
				return plan.Link{}, err
			}
		}
	}
	// A shaped link lets a burst pass faster than what follows it: only what
	// takes long tells the rate.
	rate := 0.0
	for bytes := linkLeast; ; bytes *= 2 {
		took, err := sample(1, bytes, 2)
		if err != nil {
			return plan.Link{}, err
		}
		rate = float64(bytes) / max(took-samples[0].Time, 1).Seconds() // without what an empty message takes
		if took >= linkEnough || bytes == linkMost {
			break
		}
		samples = samples[:len(samples)-1]
	}
	if _, err := p.trip(peer, 0, 0); err != nil {
		return plan.Link{}, err
	}
	link, err := plan.Fit(samples)
	if err != nil { // noise beyond sense: the defaults are better
		return plan.Link{}, nil
	}
	// The fit heeds all samples alike, and the small ones may be such a burst.
	link.BytesPerSecond = min(link.BytesPerSecond, rate)
	return link.Rounded(), nil
}

// trip is how long it takes from the first of some messages until the answer to
// the last. No messages end the measurement.
func (p *linkProbe) trip(peer, messages, bytes int) (time.Duration, error) {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[0:], uint64(messages))
	binary.LittleEndian.PutUint64(head[8:], uint64(bytes))
	if err := p.t.Send(p.ctx, peer, linkTag, head[:]); err != nil || messages == 0 {
		return 0, err
	}
	if err := p.t.Recv(p.ctx, peer, linkTag, nil); err != nil { // it is ready
		return 0, err
	}
	p.memory = grown(p.memory, bytes)
	b := p.memory
	start := time.Now()
	for range messages {
		if err := p.t.Send(p.ctx, peer, linkTag, b); err != nil {
			return 0, err
		}
	}
	err := p.t.Recv(p.ctx, peer, linkTag, nil)
	return time.Since(start), err
}

// answer is the peer's half of measure.
func (p *linkProbe) answer(peer int) error {
	for {
		var head [16]byte
		if err := p.t.Recv(p.ctx, peer, linkTag, head[:]); err != nil {
			return err
		}
		messages, bytes := binary.LittleEndian.Uint64(head[0:]), binary.LittleEndian.Uint64(head[8:])
		switch {
		case messages == 0:
			return nil
		case messages > linkRepeats || bytes > linkMost:
			return fmt.Errorf("rank %d asks for %d messages of %d bytes", peer, messages, bytes)
		}
		p.memory = grown(p.memory, int(bytes))
		b := p.memory
		if err := p.t.Send(p.ctx, peer, linkTag, nil); err != nil {
			return err
		}
		for range messages {
			if err := p.t.Recv(p.ctx, peer, linkTag, b); err != nil {
				return err
			}
		}
		if err := p.t.Send(p.ctx, peer, linkTag, nil); err != nil {
			return err
		}
	}
}
