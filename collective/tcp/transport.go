package tcp

import (
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// Transport is one rank's end of all links. It implements collective.Transport.
type Transport struct {
	rank    int
	links   []*link // by rank; the own one has no socket
	hosts   [][]int
	door    *door // nil in a world of one
	segment int
	table   *crc32.Table // nil: no checksums
	polls   bool         // waiters read by themselves
	pool    framePool
	running sync.WaitGroup
	closing sync.Once
	stop    context.CancelFunc // ends repairs
	lost    func(*collective.LinkError)
	// patience bounds Close where no peer was lost.
	patience time.Duration

	mu      sync.Mutex
	culprit int // the first rank that was lost, -1: none
}

var _ collective.Transport = (*Transport)(nil)

// newTransport starts the goroutines of all links; conns has nil for c.Rank.
func newTransport(c Config, d *door, conns [][]net.Conn, hosts [][]int) (*Transport, error) {
	t := &Transport{
		rank: c.Rank, hosts: hosts, culprit: -1, links: make([]*link, c.Size),
		door: d, segment: c.Segment, polls: canPollHere() && !c.Busy, lost: c.Lost, patience: c.Patience,
	}
	if c.Checksum {
		t.table = crc32.MakeTable(crc32.Castagnoli)
	}
	for peer := range t.links {
		l := newLink(t, peer)
		t.links[peer] = l
		if peer == c.Rank {
			continue
		}
		for index, conn := range conns[peer] {
			s := newSocket(l, index)
			if err := s.attach(conn); err != nil {
				return nil, fmt.Errorf("rank %d: socket of rank %d: %w", c.Rank, peer, err)
			}
			l.sockets = append(l.sockets, s)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	if d != nil {
		d.transport = t
		close(d.ready)
	}
	for _, s := range t.sockets() {
		t.running.Go(func() { s.run(ctx) })
		t.running.Go(s.writeLoop)
	}
	return t, nil
}

// Rank is this process's place in the world.
func (t *Transport) Rank() int { return t.rank }

// Size is the number of ranks.
func (t *Transport) Size() int { return len(t.links) }

// Hosts lists the ranks by host; the caller must not change the lists.
func (t *Transport) Hosts() [][]int { return t.hosts }

// Processes is nil: every rank is a process of its own.
func (t *Transport) Processes() [][]int { return nil }

// Segment is a value of any length where received bytes can be lent in pieces, so
// that a round trip is paid once. Else whole messages are gathered.
func (t *Transport) Segment(peer int) int {
	if peer == t.rank || len(t.links[peer].sockets) > 1 {
		return 4 * collective.SegmentSize
	}
	return wholeSegment
}

// wholeSegment is more than any message has.
const wholeSegment = 1 << 40

// Send sends b to rank to; see the package comment for what cancelling does.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if !t.reaches(to) {
		return fmt.Errorf("rank %d: send to rank %d of %d", t.rank, to, len(t.links))
	}
	return t.links[to].sendMessage(ctx, tag, b)
}

// SendAsReady sends what is ready of b while the rest is being made.
func (t *Transport) SendAsReady(ctx context.Context, to int, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	if len(b) <= eagerMax || !t.reaches(to) || to == t.rank {
		return collective.SendWhenReady(ctx, t, to, tag, b, ready)
	}
	return t.links[to].sendAsReady(ctx, tag, b, ready)
}

// SendFilled has fill make the message where it waits until the peer has handled it.
func (t *Transport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	if len(stage) > eagerMax+fillRoom || !t.reaches(to) || to == t.rank {
		return collective.SendStaged(ctx, t, to, tag, stage, fill)
	}
	return t.links[to].sendFilled(ctx, tag, stage, fill)
}

// Recv fills b with the next message of that tag from rank from.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	if !t.reaches(from) {
		return fmt.Errorf("rank %d: receive from rank %d of %d", t.rank, from, len(t.links))
	}
	return t.links[from].receiveMessage(ctx, tag, b, nil)
}

// RecvInPlace lends what has just been read, a large message piece by piece or,
// where its pieces come over several sockets in any order, when all are there. It
// is not offered for the own rank. use may run on another goroutine.
func (t *Transport) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	if !t.reaches(from) {
		return false, fmt.Errorf("rank %d: receive from rank %d of %d", t.rank, from, len(t.links))
	}
	if len(t.links[from].sockets) == 0 {
		return false, nil
	}
	return true, t.links[from].receiveMessage(ctx, tag, nil, use)
}

func (t *Transport) reaches(rank int) bool {
	return rank >= 0 && rank < len(t.links) && (rank == t.rank || t.links[rank].sockets != nil)
}

// Register shares nothing.
func (t *Transport) Register(context.Context, device.Buf) ([]device.Buf, error) { return nil, nil }

// Direct shares nothing.
func (t *Transport) Direct(uint64, []int) collective.Direct { return nil }

// fail ends all calls because peer was lost.
func (t *Transport) fail(peer int, err error) {
	lost := t.links[peer].lost(err)
	if t.Fail(lost) && t.lost != nil {
		t.lost(lost)
	}
}

// Fail ends all pending and later calls with lost, which may name a rank that
// this transport does not connect. It reports whether that was the first loss.
func (t *Transport) Fail(lost *collective.LinkError) bool {
	t.mu.Lock()
	first := t.culprit < 0
	if first {
		t.culprit = lost.Peer
	}
	t.mu.Unlock()
	for _, l := range t.links {
		l.abandon(lost)
	}
	return first
}

// Close says goodbye to the peers, gives those that can be reached time to take what
// was sent, and waits for all goroutines. It waits no longer when they take nothing for
// a second, or after some seconds so little that they would not be done before
// Config.Patience. Where a peer was lost it is a second in all.
func (t *Transport) Close() error {
	t.closing.Do(t.close)
	return nil
}

func (t *Transport) close() {
	t.mu.Lock()
	culprit := t.culprit
	t.mu.Unlock()
	closed := fmt.Errorf("tcp transport of rank %d: %w", t.rank, collective.ErrClosed)
	for _, l := range t.links {
		l.abandon(closed)
	}
	for _, l := range t.peers() {
		l.mu.Lock()
		l.push(header{kind: kindGoodbye, tag: collective.Tag(culprit + 1)})
		l.mu.Unlock()
		l.flush()
	}
	t.linger(culprit < 0)
	t.stop()
	if t.door != nil {
		t.door.close()
	}
	for _, s := range t.sockets() {
		s.link.mu.Lock()
		_ = s.conn.Close()
		s.link.mu.Unlock()
		close(s.stop)
	}
	t.running.Wait()
	for _, s := range t.sockets() {
		s.bury()
	}
}

func (t *Transport) peers() []*link {
	return slices.DeleteFunc(slices.Clone(t.links), func(l *link) bool { return l.sockets == nil })
}

func (t *Transport) sockets() (all []*socket) {
	for _, l := range t.links {
		all = append(all, l.sockets...)
	}
	return all
}

func (t *Transport) lostSomebody() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.culprit >= 0
}
