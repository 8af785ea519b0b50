package inproc

import (
	"context"
	"fmt"
	"sync"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// Transport is one rank of a world inside the process.
type Transport struct {
	rank   int
	world  *world
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex // guards what others send here
	boxes map[key]*box
	spare []*box // empty boxes, for reuse
}

var _ collective.Transport = (*Transport)(nil)

// world is what the ranks share.
type world struct {
	ranks    []*Transport
	hosts    [][]int
	process  [][]int // one with all ranks
	messages sync.Pool
	receives sync.Pool
}

// New returns the n transports of a world on one host.
func New(n int) []*Transport {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return NewOn([][]int{ranks})
}

// NewOn returns the transports of a world whose ranks count as those of several
// hosts: each rank is in one of the lists, which it keeps.
func NewOn(hosts [][]int) []*Transport {
	w := &world{hosts: hosts, process: [][]int{nil}}
	w.messages.New = func() any { return &message{taken: make(chan struct{}, 1)} }
	w.receives.New = func() any { return &receive{ready: make(chan struct{}, 1)} }
	for _, host := range hosts {
		for range host {
			r := len(w.ranks)
			w.process[0] = append(w.process[0], r)
			w.ranks = append(w.ranks, &Transport{rank: r, world: w, closed: make(chan struct{}), boxes: map[key]*box{}})
		}
	}
	return w.ranks
}

// Rank returns this rank's number.
func (t *Transport) Rank() int { return t.rank }

// Size returns the number of ranks.
func (t *Transport) Size() int { return len(t.world.ranks) }

// Hosts returns one host with all ranks, or those of NewOn. The caller must not
// change it.
func (t *Transport) Hosts() [][]int { return t.world.hosts }

// Processes returns one process with all ranks. The caller must not change it.
func (t *Transport) Processes() [][]int { return t.world.process }

// Segment lets what arrives be reduced and passed on while it is in the cache.
func (t *Transport) Segment(int) int { return collective.SegmentSize }

// Register offers no shared memory yet.
func (t *Transport) Register(context.Context, device.Buf) ([]device.Buf, error) { return nil, nil }

// Direct offers no shared memory yet.
func (t *Transport) Direct(uint64, []int) collective.Direct { return nil }

// Close ends this rank's traffic; see the package comment for its peers.
func (t *Transport) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// Send implements collective.Transport.
func (t *Transport) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	peer := t.world.ranks[to]
	if err := t.usable(ctx); err != nil {
		return err
	}
	if isClosed(peer.closed) {
		return t.lost(to)
	}
	k := key{t.rank, tag}
	peer.mu.Lock()
	box := peer.box(k)
	if r := box.receives.pop(); r != nil {
		peer.tidy(k, box)
		peer.mu.Unlock()
		return t.handOver(r, tag, b)
	}
	m := t.message(b)
	box.messages.push(m)
	peer.mu.Unlock()
	if len(b) <= collective.EagerSize { // m may be received and reused already
		return nil
	}
	select {
	case <-m.taken:
		t.recycle(m)
		return nil
	case <-ctx.Done():
		return t.withdraw(peer, k, m, ctx.Err())
	case <-t.closed:
		return t.withdraw(peer, k, m, collective.ErrClosed)
	case <-peer.closed:
		return t.withdraw(peer, k, m, t.lost(to))
	}
}

// handOver gives b to a receiver that is waiting already.
func (t *Transport) handOver(r *receive, tag collective.Tag, b []byte) error {
	if !r.inPlace {
		r.err = fill(r.into, t.rank, tag, b)
		r.ready <- struct{}{}
		return nil
	}
	m := t.message(b)
	r.message = m
	r.ready <- struct{}{}
	if len(b) > collective.EagerSize {
		<-m.taken // the receiver is at it, so this is no wait for anybody
		t.recycle(m)
	}
	return nil
}

// withdraw takes an unreceived message back; when a receiver has it already the
// message counts as sent.
func (t *Transport) withdraw(peer *Transport, k key, m *message, err error) error {
	peer.mu.Lock()
	box := peer.box(k)
	removed := box.messages.remove(m)
	peer.tidy(k, box)
	peer.mu.Unlock()
	if !removed {
		<-m.taken
		err = nil
	}
	t.recycle(m)
	return err
}

// SendAsReady sends when all is ready.
func (t *Transport) SendAsReady(ctx context.Context, to int, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	return collective.SendWhenReady(ctx, t, to, tag, b, ready)
}

// SendFilled sends what fill makes in stage.
func (t *Transport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, t, to, tag, stage, fill)
}

// Recv implements collective.Transport.
func (t *Transport) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	m, err := t.receive(ctx, from, tag, b, false)
	if err != nil || m == nil {
		return err
	}
	err = fill(b, from, tag, m.data)
	t.release(m)
	return err
}

// RecvInPlace implements collective.Transport; it is always offered.
func (t *Transport) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	m, err := t.receive(ctx, from, tag, nil, true)
	if err != nil {
		return true, err
	}
	defer t.release(m)
	return true, use(m.data)
}

// receive returns the next message, or nil when the sender has filled b itself.
func (t *Transport) receive(ctx context.Context, from int, tag collective.Tag, b []byte, inPlace bool) (*message, error) {
	peer := t.world.ranks[from]
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	k := key{from, tag}
	t.mu.Lock()
	box := t.box(k)
	if m := box.messages.pop(); m != nil {
		t.tidy(k, box)
		t.mu.Unlock()
		return m, nil
	}
	r := t.world.receives.Get().(*receive)
	r.into, r.inPlace = b, inPlace
	box.receives.push(r)
	t.mu.Unlock()
	var err error
	select {
	case <-r.ready:
	case <-ctx.Done():
		err = t.cancel(k, r, ctx.Err())
	case <-t.closed:
		err = t.cancel(k, r, collective.ErrClosed)
	case <-peer.closed:
		err = t.cancel(k, r, t.lost(from))
	}
	m := r.message
	if err == nil {
		err = r.err
	}
	r.into, r.message, r.err = nil, nil, nil
	t.world.receives.Put(r)
	return m, err
}

// cancel takes a waiting receive back; when a sender is serving it already it
// completes instead.
func (t *Transport) cancel(k key, r *receive, err error) error {
	t.mu.Lock()
	box := t.box(k)
	removed := box.receives.remove(r)
	t.tidy(k, box)
	t.mu.Unlock()
	if removed {
		return err
	}
	<-r.ready
	return nil
}

func (t *Transport) usable(ctx context.Context) error {
	if isClosed(t.closed) {
		return fmt.Errorf("inproc: rank %d: %w", t.rank, collective.ErrClosed)
	}
	return ctx.Err()
}

func (t *Transport) lost(peer int) error {
	return &collective.LinkError{Rank: t.rank, Peer: peer, Err: collective.ErrClosed}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
