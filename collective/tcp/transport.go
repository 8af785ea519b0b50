package tcp

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// lingerTime is how long Close waits for peers to take what was sent before.
const lingerTime = time.Second

// Transport is one rank's end of all links. It implements collective.Transport.
type Transport struct {
	rank    int
	links   []*link // by rank; the own one has no socket
	hosts   [][]int
	pool    bufferPool
	running sync.WaitGroup
	closing sync.Once

	mu      sync.Mutex
	culprit int // the first rank that was lost, -1: none
}

var _ collective.Transport = (*Transport)(nil)

// newTransport starts the goroutines of all links; conns has nil for rank.
func newTransport(rank int, conns []*net.TCPConn, hosts [][]int) (*Transport, error) {
	t := &Transport{rank: rank, hosts: hosts, culprit: -1, links: make([]*link, len(conns))}
	for peer, conn := range conns {
		t.links[peer] = newLink(t, peer)
		if peer == rank {
			continue
		}
		if err := t.links[peer].attach(conn); err != nil {
			return nil, fmt.Errorf("rank %d: socket of rank %d: %w", rank, peer, err)
		}
	}
	for peer, l := range t.links {
		if peer != rank {
			t.running.Go(l.readLoop)
			t.running.Go(l.writeLoop)
		}
	}
	return t, nil
}

// Rank is this process's place in the world.
func (t *Transport) Rank() int { return t.rank }

// Size is the number of ranks.
func (t *Transport) Size() int { return len(t.links) }

// Hosts lists the ranks by host; the caller must not change the lists.
func (t *Transport) Hosts() [][]int { return t.hosts }

// Send sends b to rank to; see the package comment for what cancelling does.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if to < 0 || to >= len(t.links) {
		return fmt.Errorf("rank %d: send to rank %d of %d", t.rank, to, len(t.links))
	}
	return t.links[to].sendMessage(ctx, tag, b)
}

// Recv fills b with the next message of that tag from rank from.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	if from < 0 || from >= len(t.links) {
		return fmt.Errorf("rank %d: receive from rank %d of %d", t.rank, from, len(t.links))
	}
	return t.links[from].receiveMessage(ctx, tag, b)
}

// RecvInPlace is not offered: bytes come from a stream and must be put somewhere.
func (t *Transport) RecvInPlace(context.Context, int, collective.Tag, func([]byte) error) (bool, error) {
	return false, nil
}

// Register shares nothing.
func (t *Transport) Register(context.Context, device.Buf) ([]device.Buf, error) { return nil, nil }

// Direct shares nothing.
func (t *Transport) Direct(uint64, []int) collective.Direct { return nil }

// fail ends all calls because peer was lost.
func (t *Transport) fail(peer int, err error) {
	t.mu.Lock()
	if t.culprit < 0 {
		t.culprit = peer
	}
	t.mu.Unlock()
	lost := t.links[peer].lost(err)
	for _, l := range t.links {
		l.abandon(lost)
	}
}

// Close says goodbye to the peers, gives them a second to take what was sent,
// and waits for all goroutines.
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
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	expired := false
	for _, l := range t.peers() {
		if expired {
			break
		}
		select {
		case <-l.parted:
		case <-timer.C:
			expired = true
		}
	}
	for _, l := range t.peers() {
		_ = l.conn.Close()
		close(l.stop)
	}
	t.running.Wait()
}

func (t *Transport) peers() []*link {
	return slices.DeleteFunc(slices.Clone(t.links), func(l *link) bool { return l.conn == nil })
}
