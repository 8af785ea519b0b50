package monitor

import (
	"encoding/json"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// beat is what a rank shows of itself, as JSON in the store.
type beat struct {
	Count  uint64         // grows with each
	Left   bool           `json:",omitempty"` // in good order
	Groups []groupBeat    `json:",omitempty"`
	Held   map[int]string `json:",omitempty"` // by rank 0: who holds others up, and how
}

type groupBeat struct {
	ID    uint64
	Name  string
	Ended uint64        // the newest call that has ended
	Idle  time.Duration // since then, to a beat
	Calls []callBeat    `json:",omitempty"`
	Ranks []int         `json:",omitempty"` // of the group, when a call is due for a report
	// Messages of Exchanges that have left for, and come from, the transport's
	// ranks.
	Sent, Received map[int]uint64 `json:",omitempty"`
}

type callBeat struct {
	Sequence uint64
	Text     string
	Label    string `json:",omitempty"`
	Exchange bool   `json:",omitempty"`
	Recv     bool   `json:",omitempty"` // of an Exchange
	Ahead    bool   `json:",omitempty"` // of an Exchange, and nobody waits for it yet
	Peer     int    // the transport's rank that it waits for, or -1
	For      time.Duration
}

const longestLabel = 120

func (b *beat) encode() []byte {
	out, err := json.Marshal(b)
	if err != nil {
		panic(err) // no value of these types fails
	}
	return out
}

// track remembers since when things are as they are, as far as a Group does not:
// when a call ended, when a part of an Exchange began.
type track struct {
	ended uint64
	since time.Time
	last  time.Time // of the last look
	calls map[callID]time.Time
}

type callID struct {
	exchange bool
	peer     int
	text     string // tells the directions of exchanges apart
	sequence uint64
}

// sample looks at a Group. due is the age from which a call may be reported.
func (t *track) sample(g collective.Watched, now time.Time, due time.Duration) groupBeat {
	p := g.Progress()
	if t.since.IsZero() || p.Ended != t.ended {
		t.ended, t.since = p.Ended, t.last // or later, but not before it began
		if p.Began.After(t.since) {
			t.since = p.Began
		}
		if t.since.IsZero() {
			t.since = now
		}
	}
	t.last = now
	out := groupBeat{ID: g.ID(), Name: g.Name(), Ended: p.Ended, Idle: now.Sub(t.since)}
	for _, passed := range p.Passed {
		out.passed(g.Ranks()[passed.Peer], passed)
	}
	calls := map[callID]time.Time{}
	for _, c := range p.Pending {
		id := callID{sequence: c.Sequence}
		if c.Exchange {
			id = callID{true, c.Peer, c.Call, c.Sequence}
		}
		since, known := t.calls[id]
		switch {
		case known:
		case c.Exchange || p.Began.IsZero():
			since = now
		default:
			since = p.Began
		}
		calls[id] = since
		b := callBeat{Sequence: c.Sequence, Text: c.Call, Label: shortened(c.Label), Exchange: c.Exchange, Recv: c.Recv, Ahead: c.Ahead, Peer: -1, For: now.Sub(since)}
		if c.Peer >= 0 {
			b.Peer = g.Ranks()[c.Peer]
		}
		if b.For >= due {
			out.Ranks = g.Ranks()
		}
		out.Calls = append(out.Calls, b)
	}
	t.calls = calls
	return out
}

func (b *groupBeat) passed(rank int, p collective.Passed) {
	to := &b.Sent
	if p.Recv {
		to = &b.Received
	}
	if *to == nil {
		*to = map[int]uint64{}
	}
	(*to)[rank] = p.Count
}

func shortened(label string) string {
	if len(label) > longestLabel {
		return label[:longestLabel] + "..."
	}
	return label
}
