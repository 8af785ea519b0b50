package collective

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// A notice tells peers that a rank has failed, closed or waits for them: kind, the rank that
// caused it, a sequence number, the length of the text, how many messages of
// Exchanges the sender had sent to the receiver, the text; or, of one that waits,
// the header of its call. A rank that waits itself answers that one with the rank
// it waits for.
const (
	noticeSize     = 1024
	noticeFailed   = 1
	noticeClosed   = 2
	noticeWaiting  = 3
	noticeStuck    = 4
	noticeDeparted = 5 // failed after the call of that number, because another rank closed
	noticeText     = 32
	noticeLabel    = 300
	noticeTimeout  = time.Second // for telling all peers
	// nudgeEvery is how often a rank that waits tells the rank it waits for in
	// which call it is, for the cases that no message shows: two ranks in
	// different calls, each waiting for the other.
	nudgeEvery = 500 * time.Millisecond
	// watchAll is the group size up to which every rank watches all others.
	watchAll = 9
)

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
		case noticeStuck:
			g.executor.guard.blame(sequence, culprit)
		case noticeFailed, noticeDeparted:
			if b[0] == noticeDeparted {
				g.letFinish(sequence)
			}
			g.kill(nil, &PeerError{Peer: culprit, Err: &RemoteError{From: g.ranks[peer], Text: string(text)}})
			return
		case noticeClosed:
			g.peerClosed(peer, sequence, string(text))
			g.laneTo(lane{peer, true}).limitTo(binary.LittleEndian.Uint64(b[24:]), string(text))
			return
		}
	}
}

// departedGrace is how long a rank may take to finish a call that all ranks have done
// their part for.
const departedGrace = time.Second

// letFinish waits until this rank has ended the call of that number, in which a rank
// took part that then left. That another has failed in the next call since is no
// reason to end this one.
func (g *Group) letFinish(sequence uint64) {
	ctx, cancel := context.WithTimeout(g.ctx, departedGrace)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for g.ended.Load() < sequence && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// nudge tells a peer in which call this rank waits for it.
func (g *Group) nudge(peer int, sequence uint64) {
	g.mu.Lock()
	h := g.recent[sequence%uint64(len(g.recent))]
	g.mu.Unlock()
	if h.sequence != sequence {
		return
	}
	b := make([]byte, noticeSize)
	b[0] = noticeWaiting
	h.encode(b[noticeText:])
	g.notify(peer, b)
}

// notify sends a notice beside everything else.
func (g *Group) notify(peer int, b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.death == nil {
		// An error of the link is found by whoever waits on it.
		g.owned.Go(func() { _ = g.transport.Send(g.ctx, g.ranks[peer], g.tag(noticeChannel), b) })
	}
}

// compare looks whether this rank runs the same call as a peer that waits for
// it, and if so tells whom it waits for itself.
func (g *Group) compare(peer int, theirs []byte) {
	their, ok := decodeHeader(theirs)
	if !ok {
		return
	}
	g.mu.Lock()
	mine := g.recent[their.sequence%uint64(len(g.recent))]
	g.mu.Unlock()
	if mine.sequence != their.sequence {
		return // this rank is not there yet, or long past it
	}
	if _, same := mine.matches(theirs); same {
		if stuck := g.executor.guard.waitsFor(their.sequence); stuck >= 0 && stuck != peer {
			b := make([]byte, noticeSize)
			b[0] = noticeStuck
			binary.LittleEndian.PutUint32(b[4:], uint32(stuck))
			binary.LittleEndian.PutUint64(b[8:], their.sequence)
			g.notify(peer, b)
		}
		return
	}
	g.kill(nil, &PeerError{
		Generation: g.config.Generation, Group: g.config.Name, Sequence: mine.sequence, Rank: g.rank, Peer: peer, Global: g.ranks,
		Call: mine.String(), Err: g.mismatch(mine, peer, their, 0, 0),
	})
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
	var telling sync.WaitGroup // one that does not listen keeps no other waiting
	defer telling.Wait()
	for _, peer := range g.watched() {
		own := bytes.Clone(b)
		binary.LittleEndian.PutUint64(own[24:], g.sentTo(peer))
		// A peer that cannot be told is told by others, or is the reason.
		telling.Go(func() { _ = g.transport.Send(ctx, g.ranks[peer], g.tag(noticeChannel), own) })
	}
}
