package collective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// lane is one direction of Exchange with one peer.
type lane struct {
	peer int
	recv bool
}

// exchangeLane carries out what Exchanges ask of its lane, in order. Lanes do
// not wait for each other: a pipeline stage may wait for a gradient and send an
// activation at the same time.
type exchangeLane struct {
	lane
	group *Group
	wake  chan struct{}
	guard guard

	// Under Group.mu.
	queue     []exchangePart
	head      int
	limit     uint64 // no message after this one will come
	closedFor string // why, or ""

	name     string        // "send" or "receive"
	spans    string        // the lane of its spans
	done     atomic.Uint64 // parts carried out
	latest   atomic.Int64
	sender   sender
	receiver receiver
}

type exchangePart struct {
	work *Work
	buf  device.Buf
}

// Exchange implements Comm. Its parts begin at once, whatever calls are queued.
func (g *Group) Exchange(ctx context.Context, list []PointToPoint) *Work {
	w := &Work{group: nil, ctx: ctx, call: Call{Kind: pointToPoint}, waiting: len(list)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.death != nil {
		return failedWork(g.deathOf(w))
	}
	for _, p := range list {
		if p.Peer < 0 || p.Peer >= len(g.ranks) {
			return failedWork(fmt.Errorf("rank %d, group %s: exchange with rank %d of %d", g.rank, g.config.Name, p.Peer, len(g.ranks)))
		}
	}
	if len(list) == 0 {
		w.finish(nil)
	}
	for _, p := range list {
		l := g.laneLocked(lane{p.Peer, p.Recv})
		l.queue = append(l.queue, exchangePart{w, p.Buf})
		l.signal()
	}
	return w
}

func (l *exchangeLane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// asked reports that somebody waits for the oldest part, or for one behind it, which
// comes no sooner: a receive that was posted ahead may be for a long time after.
func (l *exchangeLane) asked() bool {
	l.group.mu.Lock()
	defer l.group.mu.Unlock()
	return l.askedLocked()
}

// askedLocked is asked while g.mu is held.
func (l *exchangeLane) askedLocked() bool {
	return slices.ContainsFunc(l.queue[l.head:], func(p exchangePart) bool { return p.work.asked() })
}

func (g *Group) laneTo(at lane) *exchangeLane {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.laneLocked(at)
}

// laneLocked returns a lane, which starts with its first use; g.mu is held.
func (g *Group) laneLocked(at lane) *exchangeLane {
	if l := g.lanes[at]; l != nil {
		return l
	}
	l := &exchangeLane{lane: at, group: g, wake: make(chan struct{}, 1), limit: math.MaxUint64}
	l.name = "send"
	if at.recv {
		l.name = "receive"
	}
	l.spans = g.config.Name + " " + l.name
	l.guard.group, l.guard.lane = g, l
	l.sender = sender{group: g, ctx: g.ctx, tag: g.tag(exchangeChannel), latest: &l.latest}
	l.receiver.init(g, g.ctx, g.tag(exchangeChannel), &l.latest)
	g.lanes[at] = l
	if g.death == nil {
		g.owned.Go(l.loop)
	}
	return l
}

// sentTo is the number of messages that Exchanges have sent to a peer.
func (g *Group) sentTo(peer int) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lanes[lane{peer, false}]; l != nil {
		return l.done.Load()
	}
	return 0
}

// limitTo says that the peer has closed after so many messages, and why.
func (l *exchangeLane) limitTo(limit uint64, reason string) {
	l.group.mu.Lock()
	l.limit, l.closedFor = limit, reason
	asked := l.head < len(l.queue) && l.done.Load() >= limit
	var w *Work
	if asked {
		w = l.queue[l.head].work
	}
	l.group.mu.Unlock()
	if asked {
		l.group.kill(w, l.describe(w, device.Buf{}, closedError(reason)))
	}
}

func (l *exchangeLane) loop() {
	for {
		select {
		case <-l.wake:
			for l.next() {
			}
		case <-l.group.ctx.Done():
			l.drain()
			return
		}
	}
}

// next carries out the oldest part; false when there is none.
func (l *exchangeLane) next() bool {
	g := l.group
	g.mu.Lock()
	if l.head == len(l.queue) || g.death != nil {
		g.mu.Unlock()
		return false
	}
	part := l.queue[l.head]
	gone, reason := l.done.Load() >= l.limit, l.closedFor
	g.mu.Unlock()
	err := l.guard.begin(part.work, time.Now())
	if err == nil && gone {
		err = closedError(reason)
	}
	if err == nil {
		start := time.Now().UnixNano()
		l.latest.Store(start)
		if err = l.carryOut(part.buf); err == nil {
			l.record(part.buf, start)
		}
	}
	l.guard.end()
	if err != nil {
		g.kill(part.work, l.describe(part.work, part.buf, err))
		return false // drain ends the part with its error
	}
	l.done.Add(1)
	g.mu.Lock()
	l.queue[l.head] = exchangePart{}
	if l.head++; l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	g.mu.Unlock()
	part.work.partEnded(nil)
	return true
}

func (l *exchangeLane) carryOut(b device.Buf) error {
	h := header{kind: pointToPoint, typ: b.Type, sequence: l.done.Load() + 1, count: b.Len}
	l.guard.waiting.Store(int32(l.peer))
	if l.recv {
		return l.receiver.receive(l.peer, h, intake{into: b}, nil)
	}
	return l.sender.send(l.peer, h, b, nil)
}

// record notes a part's spans, on a lane beside the group's calls.
func (l *exchangeLane) record(b device.Buf, start int64) {
	events := l.group.config.Events
	if events == nil {
		return
	}
	end := events.Now()
	span := observe.Span{Kind: observe.CallWait, Lane: l.spans, Name: l.name, Start: start, End: min(l.latest.Load(), end)}
	if l.recv {
		events.Record(span)
		span.BytesIn = int64(b.Size())
	} else {
		span.Bytes = int64(b.Size())
	}
	span.Kind, span.Start, span.End = observe.Call, span.End, end
	events.Record(span)
}

// describe makes the error of a part; an empty b is not mentioned.
func (l *exchangeLane) describe(w *Work, b device.Buf, err error) *PeerError {
	e := l.group.describe(w, err)
	e.Peer, e.Sequence = l.peer, l.done.Load()+1
	e.Call = l.name
	if b.Len > 0 {
		e.Call += fmt.Sprintf(" of %d %v", b.Len, b.Type)
	}
	return e
}

// drain ends all parts that the group's death has left.
func (l *exchangeLane) drain() {
	g := l.group
	g.awaitTold()
	l.guard.close()
	g.mu.Lock()
	left := l.queue[l.head:]
	l.queue, l.head = nil, 0
	errs := make([]error, len(left))
	for i, part := range left {
		errs[i] = g.deathOf(part.work)
	}
	g.mu.Unlock()
	for i, part := range left {
		part.work.partEnded(errs[i])
	}
}
