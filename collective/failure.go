package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A notice tells peers that a rank has failed, closed or waits for them: kind, the rank that
// caused it, a sequence number, the length of the text, how many messages of
// Exchanges the sender had sent to the receiver, the text; or, of one that waits,
// the header of its call.
const (
	noticeSize    = 512
	noticeFailed  = 1
	noticeClosed  = 2
	noticeWaiting = 3
	noticeText    = 32
	noticeTimeout = time.Second // for telling all peers
	// nudgeEvery is how often a rank that waits tells the rank it waits for in
	// which call it is, for the cases that no message shows: two ranks in
	// different calls, each waiting for the other.
	nudgeEvery = 500 * time.Millisecond
	// linkGrace is how long a broken link waits for the notice that explains it.
	linkGrace = 100 * time.Millisecond
	// watchAll is the group size up to which every rank watches all others.
	watchAll = 9
)

// RemoteError is what a peer reported as the reason of the group's death.
type RemoteError struct {
	From int // the rank that reported it
	Text string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("rank %d reports: %s", e.From, e.Text) }

// watched lists the peers whose notices this rank receives, and who receive its
// own: all in small groups, else those at distances of powers of two, over
// which a notice reaches everybody in a few hops even when ranks are dead.
func (g *Group) watched() []int {
	var peers []int
	n := len(g.ranks)
	for distance := 1; distance < n; distance++ {
		if n > watchAll && distance&(distance-1) != 0 {
			continue
		}
		for _, peer := range []int{(g.rank + distance) % n, (g.rank - distance + n) % n} {
			if !slices.Contains(peers, peer) {
				peers = append(peers, peer)
			}
		}
	}
	return peers
}

// watch waits for notices of a peer until it or this group ends.
func (g *Group) watch(peer int) {
	b := make([]byte, noticeSize)
	for {
		err := g.transport.Recv(g.ctx, g.ranks[peer], g.tag(noticeChannel), b)
		if g.ctx.Err() != nil {
			return
		}
		if err != nil {
			g.peerLost(peer, err)
			return
		}
		culprit := int(int32(binary.LittleEndian.Uint32(b[4:])))
		sequence := binary.LittleEndian.Uint64(b[8:])
		text := b[noticeText : noticeText+min(int(binary.LittleEndian.Uint32(b[16:])), noticeSize-noticeText)]
		switch b[0] {
		case noticeWaiting:
			g.compare(peer, b[noticeText:noticeText+headerSize])
		case noticeFailed:
			g.kill(nil, &PeerError{Peer: culprit, Err: &RemoteError{From: peer, Text: string(text)}})
			return
		case noticeClosed:
			g.peerClosed(peer, sequence)
			g.laneTo(lane{peer, true}).limitTo(binary.LittleEndian.Uint64(b[24:]))
			return
		}
	}
}

// nudge tells a peer in which call this rank waits for it.
func (g *Group) nudge(peer int, sequence uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.recent[sequence%uint64(len(g.recent))]
	if g.death != nil || h.sequence != sequence {
		return
	}
	g.owned.Go(func() {
		b := make([]byte, noticeSize)
		b[0] = noticeWaiting
		h.encode(b[noticeText:])
		// An error is found by the wait itself.
		_ = g.transport.Send(g.ctx, g.ranks[peer], g.tag(noticeChannel), b)
	})
}

// compare looks whether this rank ran the same call as a peer that waits for it.
func (g *Group) compare(peer int, theirs []byte) {
	their, ok := decodeHeader(theirs)
	if !ok {
		return
	}
	g.mu.Lock()
	mine := g.recent[their.sequence%uint64(len(g.recent))]
	g.mu.Unlock()
	if _, same := mine.matches(theirs); same || mine.sequence != their.sequence {
		return // or it is not there yet
	}
	g.kill(nil, &PeerError{
		Generation: g.config.Generation, Group: g.config.Name, Sequence: mine.sequence, Rank: g.rank, Peer: peer,
		Call: mine.String(), Err: mine.mismatch(g.rank, peer, their, 0, 0),
	})
}

// remember keeps the header of the call that begins to run.
func (g *Group) remember(h header) {
	g.mu.Lock()
	g.recent[h.sequence%uint64(len(g.recent))] = h
	g.mu.Unlock()
}

// peerLost kills the group when a link breaks to a peer that had not said
// goodbye.
func (g *Group) peerLost(peer int, err error) {
	var link *LinkError
	if errors.As(err, &link) {
		peer = slices.Index(g.ranks, link.Peer)
	}
	g.mu.Lock()
	expected := g.left[peer]
	g.mu.Unlock()
	if !expected {
		g.kill(nil, &PeerError{Peer: peer, Err: err})
	}
}

// peerClosed notes that a peer takes part in no call after sequence, and ends
// the call that already waits for it.
func (g *Group) peerClosed(peer int, sequence uint64) {
	g.mu.Lock()
	g.left[peer] = true
	if g.closedBy < 0 || sequence < g.closedAfter {
		g.closedBy, g.closedAfter = peer, sequence
	}
	g.mu.Unlock()
	if g.currentLocal.Load() > sequence {
		g.kill(nil, &PeerError{Peer: peer, Err: fmt.Errorf("it %w the group", ErrClosed)})
	}
}

// stillOpen returns an error when a peer has left before call sequence.
func (g *Group) stillOpen(sequence uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedBy >= 0 && sequence > g.closedAfter {
		return &peerFailure{g.closedBy, fmt.Errorf("it %w the group", ErrClosed)}
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
		e.Peer = mismatch.Peer
	case errors.As(err, &peer):
		e.Peer, e.Err = peer.peer, peer.err
	case errors.As(err, &link):
		e.Peer = slices.Index(g.ranks, link.Peer)
	case errors.As(err, &length):
		e.Peer = slices.Index(g.ranks, length.Peer)
	}
	return e
}

func (g *Group) blank(w *Work) *PeerError {
	c := w.about()
	return &PeerError{
		Generation: g.config.Generation, Group: g.config.Name, Sequence: w.sequence,
		Rank: g.rank, Peer: -1, Call: g.text(c), Label: c.Label,
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
		text = reason.Error()
	}
	g.bury(noticeFailed, reason.Peer, text)
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
		g.bury(noticeFailed, g.rank, fmt.Sprintf("it %v the group in the middle of call %d", ErrClosed, max(g.currentLocal.Load(), 1)))
		return
	}
	g.bury(noticeClosed, g.rank, "")
}

// bury does what kill and leave share; g.mu is held and released.
func (g *Group) bury(kind byte, culprit int, text string) {
	queued := g.first
	g.first, g.last = nil, nil
	sequence := g.sequence
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

// tell sends a notice to all peers that watch this rank.
func (g *Group) tell(kind byte, culprit int, sequence uint64, text string) {
	defer close(g.told)
	b := make([]byte, noticeSize)
	b[0] = kind
	binary.LittleEndian.PutUint32(b[4:], uint32(int32(culprit)))
	binary.LittleEndian.PutUint64(b[8:], sequence)
	binary.LittleEndian.PutUint32(b[16:], uint32(copy(b[noticeText:], text)))
	ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
	defer cancel()
	for _, peer := range g.watched() {
		binary.LittleEndian.PutUint64(b[24:], g.sentTo(peer))
		// A peer that cannot be told is told by others, or is the reason.
		_ = g.transport.Send(ctx, g.ranks[peer], g.tag(noticeChannel), b)
	}
}

// awaitTold waits until the peers know of the group's death, so that a caller
// who closes the transport next does not cut the notice off.
func (g *Group) awaitTold() { <-g.told }
