//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Comm is a set of ranks over a communicator of HCCL. It has a goroutine that
// starts calls, one that waits for their end, both on threads of their own, and
// one for each peer and direction of Exchange: Close waits for all.
type Comm struct {
	*job
	id    uint64
	name  string
	rank  int
	ranks []int // of the world
	hosts [][]int
	owner bool // of the job: not a Sub

	handle           uintptr
	issuing, waiting *ascend.Thread
	in, running, out ascend.Stream
	slots            []*slot
	free, flying     chan *slot
	lanes            map[lane]*channel
	owned            sync.WaitGroup
	ctx              context.Context // ends with the job or with Close
	cancel           context.CancelCauseFunc
	wake             chan struct{}
	hung             atomic.Bool // a stream may have work that never ends
	held             atomic.Bool // a lane's thread is in the library for good

	mu       sync.Mutex
	queue    []*pending
	open     []*pending // have begun and not ended
	sequence uint64
	ended    uint64    // the newest call that has succeeded
	began    time.Time // when the newest call began to run
	step     string    // of joining
	subs     int
	closed   bool
}

var _ collective.Comm = (*Comm)(nil)

// New makes the Comm of all ranks; every rank calls it. It fails when a rank does
// not come, which the error names.
func New(ctx context.Context, c Config) (collective.Comm, error) {
	c = c.filled()
	j, err := newJob(c)
	if err != nil {
		return nil, err
	}
	ranks := make([]int, c.Size)
	for r := range ranks {
		ranks[r] = r
	}
	j.owned.Go(j.watch)
	comm, err := newComm(ctx, j, c.Name, ranks, making{table: c.RankTable, mb: c.BufferMB})
	if err != nil {
		j.owned.Wait()
		return nil, err
	}
	comm.owner = true
	return comm, nil
}

// waitMargin lets the report of whoever has lost patience come first.
const waitMargin = 30 * time.Second

// newComm makes a Comm. Where it cannot, this rank's others end and all ranks are
// told, but for a library that does not cut communicators, which all ranks find alike.
func newComm(ctx context.Context, j *job, name string, ranks []int, m making) (_ *Comm, err error) {
	c := &Comm{
		job: j, id: identity(j.config, name, ranks), name: name, ranks: ranks, rank: slices.Index(ranks, j.config.Rank), hosts: local(j.config.Hosts, ranks),
		free: make(chan *slot, slotCount), flying: make(chan *slot, slotCount),
		lanes: map[lane]*channel{}, wake: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancelCause(j.ctx)
	c.opened()
	defer func() {
		if err == nil {
			return
		}
		if !refusesToCut(m, err) {
			_ = j.die(err)
		}
		c.cancel(err)
		c.gone()
		if failed := c.release(true); !errors.Is(failed, errHeld) {
			err = errors.Join(err, failed)
		}
	}()
	if c.issuing, err = j.device.NewThread(); err != nil {
		return nil, err
	}
	if c.waiting, err = j.device.NewThread(); err != nil {
		return nil, err
	}
	if c.handle, err = c.joined(ctx, m); err != nil {
		return nil, err
	}
	err = c.issuing.Do(func() error {
		// A stream that waits for an operation waits as long as its call may.
		if err := j.device.SetWaitTimeout(j.config.Timeout + waitMargin); err != nil {
			return j.ran(err, name)
		}
		for _, s := range []*ascend.Stream{&c.in, &c.running, &c.out} {
			if *s, err = j.device.NewStream(); err != nil {
				return err
			}
		}
		for range slotCount {
			s, err := newSlot(j.device)
			c.slots = append(c.slots, s)
			if err != nil {
				return err
			}
			c.free <- s
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.owned.Go(c.issue)
	c.owned.Go(c.land)
	return c, nil
}

// joined has the communicator made, within the time-out and as long as the job lives.
func (c *Comm) joined(ctx context.Context, m making) (uintptr, error) {
	ctx, stop := c.bounded(ctx)
	defer stop()
	defer c.stepped("")
	return c.join(ctx, c.issuing, c.name, c.ranks, m, c.stepped)
}

// bounded is a context that ends with the Comm, too, and when joining takes too long.
func (c *Comm) bounded(ctx context.Context) (bound context.Context, stop func()) {
	limited, cancel := context.WithTimeoutCause(ctx, c.config.JoinTimeout, waited(c.config.JoinTimeout))
	bound, end := context.WithCancelCause(limited)
	off := context.AfterFunc(c.ctx, func() { end(context.Cause(c.ctx)) })
	return bound, func() { off(); end(nil); cancel() }
}

func (c *Comm) opened() {
	if c.config.Monitor != nil {
		c.config.Monitor.Opened(c)
	}
}

func (c *Comm) gone() {
	if c.config.Monitor != nil {
		c.config.Monitor.Closed(c)
	}
}

// local renumbers hosts for some ranks of the world.
func local(all [][]int, ranks []int) [][]int {
	var lists [][]int
	for _, host := range all {
		var members []int
		for r, global := range ranks {
			if slices.Contains(host, global) {
				members = append(members, r)
			}
		}
		if len(members) > 0 {
			lists = append(lists, members)
		}
	}
	slices.SortFunc(lists, func(a, b []int) int { return a[0] - b[0] })
	return lists
}

// Rank implements collective.Comm.
func (c *Comm) Rank() int { return c.rank }

// Size implements collective.Comm.
func (c *Comm) Size() int { return len(c.ranks) }

// Hosts implements collective.Comm. The caller must not change it.
func (c *Comm) Hosts() [][]int { return c.hosts }

// Generation implements collective.Comm.
func (c *Comm) Generation() uint32 { return c.config.Generation }

// Alloc returns pinned memory, which lives until the device closes. Ranks need
// not agree on it.
func (c *Comm) Alloc(_ context.Context, t device.Type, n int) (device.Buf, error) {
	return c.device.AllocPinned(t, n)
}
