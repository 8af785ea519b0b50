package collective

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Monitor learns of a Comm's life, to look at it from outside; package monitor
// has one. Its methods are called by the goroutine that makes or closes the
// Comm, and return soon.
type Monitor interface {
	Opened(Watched)
	Closed(Watched)
}

// Progress is how far a Group's rank has come in its calls.
type Progress struct {
	Ended   uint64    // the newest call that has succeeded here, 0: none
	Began   time.Time // when the newest call began to run; zero: none has
	Pending []Pending // what runs or waits now: at most one call, and parts of Exchanges
	Passed  []Passed  // by Exchanges so far
}

// Passed is how many messages have passed in one direction of Exchanges with a
// peer: left this rank, or arrived.
type Passed struct {
	Peer  int // the rank of the Group
	Recv  bool
	Count uint64
}

// Pending is a call, or a part of an Exchange, that has begun and not ended.
type Pending struct {
	Sequence uint64 // 0: the making of the Comm itself
	Call     string // such as "all-reduce sum of 1024 f32"
	Label    string
	Peer     int  // the rank of the Group that it waits for, as far as is known, or -1
	Exchange bool // Sequence counts messages of one direction with Peer
	Recv     bool // that direction
	Ahead    bool // a part of an Exchange that nobody waits for yet, nor for one behind it
}

// Progress looks at the Group from any goroutine, also while calls run.
func (g *Group) Progress() Progress {
	p := Progress{Ended: g.ended.Load()}
	if began := g.began.Load(); began != 0 {
		p.Began = g.made.Add(time.Duration(began)) // not moved by whoever sets the clock
	}
	if w := g.current.Load(); w != nil {
		if c, sequence, ok := w.unfinished(); ok {
			peer := g.executor.guard.waitsFor(sequence)
			p.Pending = append(p.Pending, Pending{Sequence: sequence, Call: g.text(c), Label: c.Label, Peer: peer})
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.lanes {
		p.Passed = append(p.Passed, Passed{l.peer, l.recv, l.done.Load()})
		if l.head == len(l.queue) {
			continue
		}
		part := l.queue[l.head]
		b := part.buf
		p.Pending = append(p.Pending, Pending{
			Sequence: l.done.Load() + 1, Call: fmt.Sprintf("%s of %d %v", l.name, b.Len, b.Type), Peer: l.peer, Exchange: true, Recv: l.recv, Ahead: !l.askedLocked(),
		})
	}
	slices.SortFunc(p.Pending, func(a, b Pending) int { return a.Peer - b.Peer })
	return p
}

// ID names the Group alike on all of its ranks, and apart from other Groups.
func (g *Group) ID() uint64 { return g.id }

// Ranks lists the transport's rank of each of this Group's ranks. The caller
// must not change it.
func (g *Group) Ranks() []int { return g.ranks }

// Lost ends the Group because somebody else has found that a rank of the
// transport is gone, unless the rank has closed the Group in good order or is
// not in it, which it reports. Calls fail with a PeerError that names the rank.
func (g *Group) Lost(rank int, reason error) bool {
	peer := slices.Index(g.ranks, rank)
	if peer < 0 || peer == g.rank {
		return false
	}
	return g.peerLost(peer, &LinkError{Rank: g.ranks[g.rank], Peer: rank, Err: reason})
}

// Suspect says what holds a rank of the transport up, such as "is stopped": a
// call that runs into the time-out then blames that rank. An empty text takes it
// back.
func (g *Group) Suspect(rank int, text string) {
	peer := slices.Index(g.ranks, rank)
	if peer < 0 || peer == g.rank {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if text == "" {
		delete(g.suspects, peer)
		return
	}
	if g.suspects == nil {
		g.suspects = map[int]suspicion{}
	}
	s, known := g.suspects[peer]
	if !known {
		g.suspicions++
		s.number = g.suspicions
	}
	s.text = text
	g.suspects[peer] = s
}

// suspicion is what holds peers up, as far as it is known.
type suspicion struct {
	text   string
	number int // in the order in which suspicions arose
}

// suspected is the error about the oldest suspect, or nil: whoever else does not
// take part by now may have given up because of it.
func (g *Group) suspected() *peerFailure {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found *peerFailure
	oldest := 0
	for peer, s := range g.suspects {
		if found == nil || s.number < oldest {
			found, oldest = &peerFailure{peer, errors.New("it " + s.text)}, s.number
		}
	}
	return found
}
