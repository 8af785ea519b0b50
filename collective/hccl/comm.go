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
	mu               sync.Mutex
	queue            []*pending
	sequence         uint64
	subs             int
	hung             atomic.Bool // a stream may have work that never ends
	closed           bool
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
	comm, err := newComm(ctx, j, c.Name, ranks, making{table: c.RankTable, mb: c.BufferMB})
	if err != nil {
		j.cancel(err)
		return nil, err
	}
	comm.owner = true
	j.owned.Go(j.watch)
	return comm, nil
}

// waitMargin lets the report of whoever has lost patience come first.
const waitMargin = 30 * time.Second

func newComm(ctx context.Context, j *job, name string, ranks []int, m making) (_ *Comm, err error) {
	c := &Comm{
		job: j, name: name, ranks: ranks, rank: slices.Index(ranks, j.config.Rank), hosts: local(j.config.Hosts, ranks),
		free: make(chan *slot, slotCount), flying: make(chan *slot, slotCount),
		lanes: map[lane]*channel{}, wake: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancelCause(j.ctx)
	defer func() {
		if err != nil {
			c.cancel(err)
			err = errors.Join(err, c.release())
		}
	}()
	if c.issuing, err = j.device.NewThread(); err != nil {
		return nil, err
	}
	if c.waiting, err = j.device.NewThread(); err != nil {
		return nil, err
	}
	if c.handle, err = j.join(ctx, c.issuing, name, ranks, m); err != nil {
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

// Close implements collective.Comm: calls that have not ended fail with
// collective.ErrClosed. Peers that wait for them time out.
func (c *Comm) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.cancel(collective.ErrClosed) // with the lock: whoever is queueing now is ended below
	c.mu.Unlock()
	if closed {
		return nil
	}
	if c.owner {
		c.job.cancel(collective.ErrClosed)
	}
	c.owned.Wait()
	err := c.release()
	if c.owner {
		c.job.owned.Wait()
	}
	return err
}

// release frees what the Comm has on the device: work that hangs is dropped, the
// communicator ended, which also ends a call that blocks in it, then the rest.
func (c *Comm) release() error {
	var errs []error
	broken := c.hung.Load()
	if c.waiting != nil {
		if broken {
			_ = c.waiting.Do(func() error { // they may have failed already
				for _, s := range []ascend.Stream{c.in, c.running, c.out} {
					if s != 0 {
						_ = c.device.AbortStream(s)
					}
				}
				return nil
			})
		}
		errs = append(errs, c.destroy(c.waiting, c.name, c.handle))
		c.issuing.Close() // it may still run what a call has given up, with a slot and streams
		errs = append(errs, c.waiting.Do(func() error {
			var errs []error
			for _, s := range []ascend.Stream{c.in, c.running, c.out} {
				if s != 0 {
					errs = append(errs, c.device.DestroyStream(s, broken))
				}
			}
			for _, s := range c.slots {
				errs = append(errs, s.free(c.device))
			}
			return errors.Join(errs...)
		}))
		c.waiting.Close()
	}
	if c.issuing != nil {
		c.issuing.Close()
	}
	return errors.Join(errs...)
}
