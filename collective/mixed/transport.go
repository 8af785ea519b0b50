package mixed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/device"
)

// Transport is one rank's end of the host's memory and of its connections across.
// It implements collective.Transport.
type Transport struct {
	rank   int
	hosts  [][]int
	host   []int          // the ranks of this rank's host
	local  []int          // by rank: its place in host, -1: elsewhere
	inside *shm.Transport // nil: nobody to share memory with
	why    error          // that is so although there are several ranks here

	mu     sync.Mutex
	across *tcp.Transport
	first  *collective.LinkError   // the first rank of this host that was lost
	giveUp context.CancelCauseFunc // ends Join; nil: it has ended
}

var _ collective.Transport = (*Transport)(nil)

func newTransport(rank, size int, hosts [][]int) (*Transport, error) {
	t := &Transport{rank: rank, hosts: hosts, local: slices.Repeat([]int{-1}, size)}
	listed := make([]bool, size)
	for _, host := range hosts {
		for _, r := range host {
			if r < 0 || r >= size || listed[r] {
				return nil, fmt.Errorf("rank %d is twice or not among the %d ranks of %v", r, size, hosts)
			}
			listed[r] = true
		}
		if slices.Contains(host, rank) {
			t.host = host
		}
	}
	if slices.Contains(listed, false) {
		return nil, fmt.Errorf("%v does not list all of %d ranks", hosts, size)
	}
	for i, r := range t.host {
		t.local[r] = i
	}
	return t, nil
}

// Rank is this process's place in the world.
func (t *Transport) Rank() int { return t.rank }

// Size is the number of ranks.
func (t *Transport) Size() int { return len(t.local) }

// Hosts lists the ranks by host; the caller must not change the lists.
func (t *Transport) Hosts() [][]int { return t.hosts }

// Processes is nil: every rank is a process of its own.
func (t *Transport) Processes() [][]int { return nil }

// Segment is that of the peer's transport.
func (t *Transport) Segment(peer int) int {
	way, there := t.route(peer)
	return way.Segment(there)
}

// Why returns what kept the ranks of this host from sharing memory, or nil.
func (t *Transport) Why() error { return t.why }

// route returns the transport that reaches a rank, and the rank's number there.
// The own rank's messages stay inside, where there is an inside.
func (t *Transport) route(rank int) (collective.Transport, int) {
	if t.inside != nil && rank >= 0 && rank < len(t.local) && t.local[rank] >= 0 {
		return t.inside, t.local[rank]
	}
	return t.across, rank
}

// Send sends b to rank to.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	way, peer := t.route(to)
	return way.Send(ctx, peer, tag, b)
}

// SendAsReady sends b to rank to while it is being made.
func (t *Transport) SendAsReady(ctx context.Context, to int, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	way, peer := t.route(to)
	return way.SendAsReady(ctx, peer, tag, b, ready)
}

// SendFilled sends to rank to what fill makes.
func (t *Transport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	way, peer := t.route(to)
	return way.SendFilled(ctx, peer, tag, stage, fill)
}

// Recv fills b with the next message of that tag from rank from.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	way, peer := t.route(from)
	return way.Recv(ctx, peer, tag, b)
}

// RecvInPlace lends what has arrived as the peer's transport does.
func (t *Transport) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	way, peer := t.route(from)
	return way.RecvInPlace(ctx, peer, tag, use)
}

// Register shares nothing, since not all ranks can reach one memory.
func (t *Transport) Register(context.Context, device.Buf) ([]device.Buf, error) { return nil, nil }

// Direct returns the shared memory of a group inside this host, and nil for any
// other.
func (t *Transport) Direct(id uint64, ranks []int) collective.Direct {
	if t.inside == nil {
		return nil
	}
	local := make([]int, len(ranks))
	for i, r := range ranks {
		if local[i] = t.local[r]; local[i] < 0 {
			return nil
		}
	}
	return t.inside.Direct(id, local)
}

// Close closes both transports, at the same time because each may linger for
// what its peers have not taken yet.
func (t *Transport) Close() error {
	var inside error
	var closing sync.WaitGroup
	if t.inside != nil {
		closing.Go(func() { inside = t.inside.Close() })
	}
	var across error
	if t.across != nil {
		across = t.across.Close()
	}
	closing.Wait()
	return errors.Join(inside, across)
}
