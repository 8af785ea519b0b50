package collective

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// RemoteError is what a peer reported as the reason of the group's death.
type RemoteError struct {
	From int // the rank that reported it, as the transport counts
	Text string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("rank %d reports: %s", e.From, e.Text) }

// linkGrace is how long a broken link waits for the notice that explains it.
const linkGrace = 100 * time.Millisecond

// remember keeps the header of the call that begins to run.
func (g *Group) remember(h header) {
	g.mu.Lock()
	g.recent[h.sequence%uint64(len(g.recent))] = h
	g.mu.Unlock()
}

// peerLost kills the group when a link breaks to a peer that had not said
// goodbye; false when it had.
func (g *Group) peerLost(peer int, err error) bool {
	blamed := peer
	var link *LinkError
	if errors.As(err, &link) {
		peer, blamed = slices.Index(g.ranks, link.Peer), g.culprit(link)
	}
	g.mu.Lock()
	expected := g.left[peer]
	g.mu.Unlock()
	if !expected {
		g.kill(nil, &PeerError{Peer: blamed, Err: err})
	}
	return !expected
}

// culprit is the rank to blame for a broken link: its peer, or whom that lost.
func (g *Group) culprit(link *LinkError) int {
	var departed *DepartedError
	if errors.As(link.Err, &departed) {
		if lost := slices.Index(g.ranks, departed.Lost); lost >= 0 && lost != g.rank {
			return lost
		}
	}
	return slices.Index(g.ranks, link.Peer)
}

// peerClosed notes that a peer takes part in no call after sequence, and ends
// the call that already waits for it.
func (g *Group) peerClosed(peer int, sequence uint64, reason string) {
	g.mu.Lock()
	g.left[peer] = true
	if g.closedBy < 0 || sequence < g.closedAfter {
		g.closedBy, g.closedAfter, g.closedFor = peer, sequence, reason
	}
	g.departed.Store(true)
	g.mu.Unlock()
	if g.currentLocal.Load() > sequence {
		g.kill(nil, &PeerError{Peer: peer, Err: closedError(reason)})
	}
}

// stillOpen returns an error when a peer has left before call sequence.
func (g *Group) stillOpen(sequence uint64) error {
	if !g.departed.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedBy >= 0 && sequence > g.closedAfter {
		return &peerFailure{g.closedBy, closedError(g.closedFor)}
	}
	return nil
}

// peerFailure is an error that a peer caused.
type peerFailure struct {
	peer int
	err  error
}

func (e *peerFailure) Error() string { return e.err.Error() }
func (e *peerFailure) Unwrap() error { return e.err }

// fail kills the group with the error of call w and returns what w ends with.
func (g *Group) fail(w *Work, err error) error {
	var link *LinkError
	if errors.As(err, &link) {
		// The peer's own words, if it had any, arrived before the link broke.
		grace := time.NewTimer(linkGrace)
		select {
		case <-g.ctx.Done():
		case <-grace.C:
		}
		grace.Stop()
	}
	g.kill(w, g.describe(w, err))
	g.awaitTold()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deathOf(w)
}

// describe makes the PeerError of call w, naming the peer where err knows it.
func (g *Group) describe(w *Work, err error) *PeerError {
	e := g.blank(w)
	e.Err = err
	var link *LinkError
	var length *LengthError
	var mismatch *MismatchError
	var peer *peerFailure
	switch {
	case errors.As(err, &mismatch):
		e.Peer = slices.Index(g.ranks, mismatch.Peer)
	case errors.As(err, &peer):
		e.Peer, e.Err = peer.peer, peer.err
	case errors.As(err, &link):
		e.Peer = g.culprit(link)
	case errors.As(err, &length):
		e.Peer = slices.Index(g.ranks, length.Peer)
	}
	return e
}

func (g *Group) blank(w *Work) *PeerError {
	c := w.about()
	return &PeerError{
		Generation: g.config.Generation, Group: g.config.Name, Sequence: w.sequence,
		Rank: g.rank, Peer: -1, Call: g.text(c), Label: c.Label, Global: g.ranks,
	}
}

// deathOf is the error that call w ends with; g.mu is held and the group dead.
func (g *Group) deathOf(w *Work) error {
	cause := g.death
	if g.deadly == w {
		return cause
	}
	e := g.blank(w)
	e.Peer, e.Err = cause.Peer, cause.Err
	if cause.Call != "" {
		e.Err = fmt.Errorf("the group is dead: %w", cause)
	}
	return e
}

// kill ends the group for the given reason, which call w met (nil: none did),
// once: it wakes everything that
// waits, fails all queued calls and tells the peers.
func (g *Group) kill(w *Work, reason *PeerError) {
	g.mu.Lock()
	if g.death != nil {
		g.mu.Unlock()
		return
	}
	g.death, g.deadly = reason, w
	text := reason.Err.Error()
	if reason.Call != "" {
		short := *reason // a label may name a hundred parameters
		if len(short.Label) > noticeLabel {
			short.Label = short.Label[:noticeLabel] + "..."
		}
		text = short.Error()
	}
	g.family.mourn(text)
	kind, sequence := byte(noticeFailed), g.sequence
	if g.closedBy >= 0 && reason.Peer == g.closedBy && errors.Is(reason.Err, ErrClosed) {
		kind, sequence = noticeDeparted, g.closedAfter
	}
	g.bury(kind, reason.Peer, sequence, text)
}

// leave ends the group for this rank's Close.
func (g *Group) leave() {
	g.mu.Lock()
	if g.death != nil {
		g.mu.Unlock()
		return
	}
	g.death = &PeerError{Peer: -1, Err: fmt.Errorf("the group is %w", ErrClosed)}
	if g.first != nil || g.running && g.currentLocal.Load() != 0 {
		text := fmt.Sprintf("it %v the group in the middle of call %d", ErrClosed, max(g.currentLocal.Load(), 1))
		if reason := g.family.reason(); reason != "" {
			text += " after this: " + reason
		}
		g.bury(noticeFailed, g.rank, g.sequence, text)
		return
	}
	g.bury(noticeClosed, g.rank, g.sequence, g.family.reason())
}

// bury does what kill and leave share; g.mu is held and released.
func (g *Group) bury(kind byte, culprit int, sequence uint64, text string) {
	queued := g.first
	g.first, g.last = nil, nil
	g.owned.Go(func() { g.tell(kind, culprit, sequence, text) })
	var errs []error
	for w := queued; w != nil; w = w.next {
		errs = append(errs, g.deathOf(w))
	}
	g.mu.Unlock()
	g.cancel()
	for i := 0; queued != nil; i++ {
		next := queued.next
		queued.finish(errs[i])
		queued = next
	}
}

// awaitTold waits until the peers know of the group's death, so that a caller
// who closes the transport next does not cut the notice off.
func (g *Group) awaitTold() { <-g.told }
