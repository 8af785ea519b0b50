package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// judge is what the goroutine that beats knows of other ranks: rank 0 of all,
// the others of rank 0.
type judge struct {
	monitor  *Monitor
	seen     []seen
	reported map[stallID]reported
	asked    []int         // how often, of the goroutine that asks
	asking   chan struct{} // holds an element while one does
	told     int           // news so far, under news
	news     chan struct{} // a lock that ends with the context
}

// reported is a stall that was told.
type reported struct {
	what, group string
	since       time.Time
	next        time.Duration // the age at which it is told again
}

// seen is what is known of a rank.
type seen struct {
	beat   beat
	at     time.Time // of the newest beat
	silent string    // since its beats stopped
	since  time.Time
}

func (j *judge) init(m *Monitor) {
	j.monitor = m
	j.seen = make([]seen, m.Size)
	j.reported = map[stallID]reported{}
	j.asked = make([]int, m.Size)
	j.asking, j.news = make(chan struct{}, 1), make(chan struct{}, 1)
}

// beats runs until Close.
func (m *Monitor) beats() {
	ticker := time.NewTicker(m.every())
	defer ticker.Stop()
	for {
		if m.Rank == 0 {
			m.lead()
		} else {
			m.attend()
		}
		select {
		case <-ticker.C:
		case <-m.ctx.Done():
			return
		}
	}
}

// show publishes this rank's beat. None follows the last one, of Close.
func (m *Monitor) show(ctx context.Context, held map[int]string) error {
	m.showing.Lock()
	defer m.showing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.count++
	b := beat{Count: m.count, Held: held}
	due := m.Stall / 2
	if m.Stall < 0 {
		due = 1<<63 - 1
	}
	now := time.Now()
	m.mu.Lock()
	for g, t := range m.groups {
		b.Groups = append(b.Groups, t.sample(g, now, due))
	}
	m.mu.Unlock()
	return m.Store.Set(ctx, m.beatKey(m.Rank), b.encode())
}

// attend is a beat of a rank other than 0: it looks at rank 0.
func (m *Monitor) attend() {
	ctx, cancel := context.WithTimeout(m.ctx, missed*m.Heartbeat)
	defer cancel()
	err := m.show(ctx, nil)
	var values [][]byte
	if err == nil {
		values, err = m.Store.Wait(ctx, m.beatKey(0))
	}
	select {
	case <-m.ctx.Done():
		return
	case <-m.Store.Done():
		return // storeEnds says so
	default:
	}
	var lead beat
	if err == nil {
		err = json.Unmarshal(values[0], &lead)
	}
	held := lead.Held
	if err != nil {
		lead, held = m.judge.seen[0].beat, nil
	}
	if e := m.judge.look(0, lead, time.Now()); e != nil {
		m.emit(*e)
	}
	if silent := m.judge.seen[0].silent; silent != "" {
		// Rank 0 tells of nobody now. That a neighbour is stopped is certain, and
		// why rank 0 is not heard of is not.
		if held = m.stoppedNear(); len(held) == 0 {
			held = map[int]string{0: silent}
		}
	}
	m.hold(held)
}

// stoppedNear returns the ranks of this host whose processes are stopped.
func (m *Monitor) stoppedNear() map[int]string {
	held := map[int]string{}
	for rank := range m.Size {
		if h, known := m.here(rank); known && m.own.near(h) && h.stopped() {
			held[rank] = stopped
		}
	}
	return held
}

const stopped = "is stopped by a signal or a debugger"

// look takes a rank's newest known beat in and returns what is new about it.
func (j *judge) look(rank int, b beat, now time.Time) *Event {
	m, s := j.monitor, &j.seen[rank]
	if b.Count != s.beat.Count || s.at.IsZero() || b.Left {
		was := s.silent
		since := s.since
		*s = seen{beat: b, at: now}
		if was != "" && !b.Left {
			return &Event{Kind: Recovered, Rank: rank, Since: since, Text: fmt.Sprintf("%s is back after %s", m.who(rank), rounded(now.Sub(since)))}
		}
		return nil
	}
	if s.silent != "" {
		return nil
	}
	h, known := m.here(rank)
	quiet := now.Sub(s.at)
	switch {
	case known && m.own.near(h) && h.stopped():
		s.silent = stopped
	case quiet >= missed*m.Heartbeat:
		s.silent = "has not been heard of since " + s.at.Format(time.TimeOnly) + ": frozen, overloaded or cut off"
	default:
		return nil
	}
	s.since = s.at
	v := view{beat: s.beat, age: quiet}
	text := fmt.Sprintf("%s %s", m.who(rank), s.silent)
	for i := range s.beat.Groups {
		g := &s.beat.Groups[i]
		text += fmt.Sprintf("\n    group %s: %s", g.Name, v.last(g))
	}
	return &Event{Kind: Silent, Rank: rank, Since: s.since, Text: text + "\n    calls wait for it until their time-out"}
}

// lead is a beat of rank 0: it looks at all others.
func (m *Monitor) lead() {
	ctx, cancel := context.WithTimeout(m.ctx, missed*m.Heartbeat)
	defer cancel()
	m.mu.Lock()
	held := m.held
	m.mu.Unlock()
	if m.show(ctx, held) != nil {
		return
	}
	if _, met := m.here(0); !met {
		return
	}
	values, err := m.Store.Wait(ctx, m.keys(m.beatKey)...)
	if err != nil {
		return
	}
	now := time.Now()
	views := make([]view, m.Size)
	held = map[int]string{}
	for rank, text := range values {
		var b beat
		if json.Unmarshal(text, &b) != nil {
			b = m.judge.seen[rank].beat
		}
		if e := m.judge.look(rank, b, now); e != nil && !m.isLost(rank) {
			m.publish(*e)
		}
		s := &m.judge.seen[rank]
		views[rank] = view{beat: s.beat, age: now.Sub(s.at), silent: s.silent}
		if s.silent != "" {
			held[rank] = s.silent
		} else if late := views[rank].age; late > 2*m.every() { // its calls may have ended
			views[rank].silent = "has not been heard of for " + rounded(late)
		}
	}
	if m.Stall > 0 {
		for rank, text := range m.judge.stalls(views) {
			if held[rank] == "" {
				held[rank] = text
			}
		}
	}
	m.hold(held)
}

func (m *Monitor) isLost(rank int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[rank] != nil
}

// stalls reports what is new among stalled calls and returns who holds them up.
func (j *judge) stalls(views []view) map[int]string {
	m := j.monitor
	held := map[int]string{}
	found := findStalls(views, m.Stall)
	known := map[stallID]bool{}
	for i := range found {
		s := &found[i]
		known[s.stallID] = true
		for _, o := range s.others {
			if o.blamed(s) && held[o.rank] == "" {
				held[o.rank] = fmt.Sprintf("%s (%s of group %s)", o.text, s.title(), s.name)
			}
		}
		before, told := j.reported[s.stallID]
		if told && s.longest < before.next {
			continue
		}
		select {
		case j.asking <- struct{}{}:
			j.reported[s.stallID] = reported{s.title(), s.name, time.Now().Add(-s.longest), 4 * s.longest}
			m.running.Go(func() {
				m.explain(s)
				<-j.asking
			})
		default: // next time
		}
	}
	for id, r := range j.reported {
		if known[id] {
			continue
		}
		delete(j.reported, id)
		if id.rank < 0 && ended(views, id) {
			m.publish(Event{Kind: Recovered, Rank: -1, Group: r.group, Since: r.since,
				Text: fmt.Sprintf("%s of group %s has ended after %s", r.what, r.group, rounded(time.Since(r.since)))})
		}
	}
	return held
}

// ended reports whether a call has succeeded on some rank.
func ended(views []view, id stallID) bool {
	for i := range views {
		if g := views[i].group(id.group); g != nil && g.Ended >= id.sequence && g.in(id.sequence) == nil {
			return true
		}
	}
	return false
}

// suspect names whom a rank is to blame, the lowest one first, as all ranks do.
func suspect(g collective.Watched, held map[int]string) {
	for _, rank := range slices.Sorted(maps.Keys(held)) {
		g.Suspect(rank, held[rank])
	}
}
