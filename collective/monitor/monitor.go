package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/observe"
)

// deathGrace is how long a death waits for the dead rank's own words, or the
// transport's, which know more.
const deathGrace = 100 * time.Millisecond

// leaveTime bounds what Close waits for the store.
const leaveTime = 500 * time.Millisecond

// Monitor is one rank's end. It is safe for concurrent use.
type Monitor struct {
	Config
	own     here
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	met     chan struct{} // closed when ranks is complete
	ranks   []here        // by rank, after met
	judge   judge         // of the goroutine that beats

	showing sync.Mutex // held while a beat goes to the store
	count   uint64     // beats so far

	events sync.Mutex // held while On runs

	mu      sync.Mutex
	groups  map[collective.Watched]*track
	held    map[int]string // suspects of the Groups
	lost    map[int]error
	sending bool // a beat has not been answered yet
}

var _ collective.Monitor = (*Monitor)(nil)

// Start shows that this rank lives, and begins to watch the others. ctx bounds
// Start alone. Several goroutines run until Close, and one per peer on this host.
func Start(ctx context.Context, c Config) (*Monitor, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	m := &Monitor{Config: c, own: ownProcess(), met: make(chan struct{}), groups: map[collective.Watched]*track{}, held: map[int]string{}, lost: map[int]error{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.judge.init(m)
	err := c.Store.Will(ctx, c.deathKey(), []byte(strconv.Itoa(c.Rank)))
	if err == nil {
		err = c.Store.Set(ctx, c.beatKey(c.Rank), (&beat{}).encode())
	}
	if err == nil {
		err = c.Store.Set(ctx, c.hereKey(c.Rank), m.own.encode())
	}
	if err != nil {
		m.cancel()
		return nil, fmt.Errorf("monitor of rank %d: %w", c.Rank, err)
	}
	for _, loop := range []func(){m.meet, m.beats, m.deaths, m.storeEnds, m.news, m.answers} {
		m.running.Go(loop)
	}
	return m, nil
}

// Close says that this rank leaves in good order and waits for all goroutines.
func (m *Monitor) Close() error {
	var err error
	m.closing.Do(func() {
		m.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		m.showing.Lock()
		m.count++
		err = m.Store.Set(ctx, m.beatKey(m.Rank), (&beat{Count: m.count, Left: true}).encode())
		m.showing.Unlock()
		m.running.Wait() // later, as what still asks the store may take as long as the last beat
	})
	if err != nil {
		return fmt.Errorf("monitor of rank %d: %w", m.Rank, err)
	}
	return nil
}

// Opened implements collective.Monitor.
func (m *Monitor) Opened(g collective.Watched) {
	m.mu.Lock()
	m.groups[g] = &track{}
	held, lost := m.held, m.lost
	suspect(g, held)
	m.mu.Unlock()
	for rank, reason := range lost {
		g.Lost(rank, reason)
	}
}

// Closed implements collective.Monitor.
func (m *Monitor) Closed(g collective.Watched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.groups, g)
}

// meet waits for all ranks and opens the processes of this host.
func (m *Monitor) meet() {
	values, err := m.Store.Wait(m.ctx, m.keys(m.hereKey)...)
	if err != nil {
		return // the store is gone, or Close was called
	}
	ranks := make([]here, m.Size)
	for rank, v := range values {
		_ = json.Unmarshal(v, &ranks[rank]) // one that says nothing is far away
	}
	m.ranks = ranks
	close(m.met)
	for rank, h := range ranks {
		if !m.own.near(h) {
			continue
		}
		m.running.Go(func() { m.follow(rank, h) })
	}
}

// follow waits for the end of a process of this host.
func (m *Monitor) follow(rank int, h here) {
	file, err := openProcess(h)
	if err != nil {
		if h.ended() {
			m.died(rank, true)
		}
		return
	}
	stop := context.AfterFunc(m.ctx, func() { _ = file.Close() })
	defer stop()
	if awaitProcess(file) {
		_ = file.Close()
		m.died(rank, true)
	}
}

// deaths waits for the will of a rank.
func (m *Monitor) deaths() {
	values, err := m.Store.Wait(m.ctx, m.deathKey())
	if err != nil {
		return
	}
	if rank, err := strconv.Atoi(string(values[0])); err == nil && rank >= 0 && rank < m.Size && rank != m.Rank {
		m.died(rank, false)
	}
}

// storeEnds waits for the end of the store, which is in rank 0's process.
func (m *Monitor) storeEnds() {
	select {
	case <-m.Store.Done():
		if m.Rank != 0 {
			m.died(0, false)
		}
	case <-m.ctx.Done():
	}
}

// died ends the Groups of a rank that has not left in good order.
func (m *Monitor) died(rank int, seen bool) {
	grace := time.NewTimer(deathGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-m.ctx.Done():
		return
	}
	if m.hasLeft(rank) {
		return
	}
	reason := fmt.Errorf("its connection to the rendezvous store broke: its process has ended, or its host is cut off")
	if h, ok := m.here(rank); ok && (seen || m.own.near(h) && h.ended()) {
		reason = fmt.Errorf("its process (pid %d) has ended", h.PID)
	}
	m.mu.Lock()
	if _, known := m.lost[rank]; known {
		m.mu.Unlock()
		return
	}
	lost := map[int]error{rank: reason} // Opened reads it without the lock
	for r, why := range m.lost {
		lost[r] = why
	}
	m.lost = lost
	groups := make([]collective.Watched, 0, len(m.groups))
	for g := range m.groups {
		groups = append(groups, g)
	}
	m.mu.Unlock()
	hurt := false
	for _, g := range groups {
		hurt = g.Lost(rank, reason) || hurt
	}
	if hurt {
		m.emit(Event{Kind: Lost, Rank: rank, Text: fmt.Sprintf("%s is lost: %v", m.who(rank), reason), Since: time.Now()})
	}
}

// hasLeft asks the store whether a rank has left in good order.
func (m *Monitor) hasLeft(rank int) bool {
	ctx, cancel := context.WithTimeout(m.ctx, deathGrace)
	defer cancel()
	values, err := m.Store.Wait(ctx, m.beatKey(rank))
	var b beat
	return err == nil && json.Unmarshal(values[0], &b) == nil && b.Left
}

// here returns what a rank said of its process; false before all have met.
func (m *Monitor) here(rank int) (here, bool) {
	select {
	case <-m.met:
		return m.ranks[rank], true
	default:
		return here{}, false
	}
}

func (m *Monitor) who(rank int) string {
	h, _ := m.here(rank)
	return h.who(rank, m.own)
}

// emit hands an event to the user and to observe.
func (m *Monitor) emit(e Event) {
	if m.Events != nil {
		lane := e.Group
		if lane == "" {
			lane = "monitor"
		}
		m.Events.Record(observe.Span{Kind: observe.Stall, Lane: lane, Name: e.Text, Start: e.Since.UnixNano(), End: m.Events.Now()})
	}
	if m.On != nil {
		m.events.Lock()
		defer m.events.Unlock()
		m.On(e)
	}
}

// hold makes the Groups blame who holds others up when they time out.
func (m *Monitor) hold(held map[int]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for g := range m.groups {
		for rank := range m.held {
			if held[rank] == "" {
				g.Suspect(rank, "")
			}
		}
		suspect(g, held)
	}
	m.held = held
}

// news passes on what rank 0 tells everybody.
func (m *Monitor) news() {
	for k := 1; ; k++ {
		values, err := m.Store.Wait(m.ctx, m.newsKey(k))
		if err != nil {
			return
		}
		var e Event
		if json.Unmarshal(values[0], &e) == nil {
			m.emit(e)
		}
	}
}

// answers tells rank 0, when it asks, what this process does. It runs beside
// everything else, so that a busy rank answers too.
func (m *Monitor) answers() {
	for k := 1; ; k++ {
		if _, err := m.Store.Wait(m.ctx, m.askKey(m.Rank, k)); err != nil {
			return
		}
		text, err := json.Marshal(goroutines())
		if err != nil || m.Store.Set(m.ctx, m.answerKey(m.Rank, k), text) != nil {
			return
		}
	}
}
