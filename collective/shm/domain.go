//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
)

var errAborted = errors.New("the call was given up")

// domain is one rank's share of the memory of a group. It implements
// collective.Direct. Ranks are the group's.
//
// Each rank has a flag that counts what it has published: entering a call,
// filling a window, leaving. All ranks publish the same things in the same
// order, so a count says all. Counts are compared as signed differences and
// never reset.
type domain struct {
	transport *Transport
	key       uint64
	ranks     []int // the transport's
	rank      int
	stopped   atomic.Bool
	quit      chan struct{} // closed when stopped
	rouse     chan struct{} // the attendant has been woken
	busy      sync.Mutex    // held by Run, Alloc and Close

	mu  sync.Mutex
	own *atomic.Uint32 // this rank's sleeping word while it is mapped

	entry      int // in the table; -1: not yet
	words      []byte
	windows    []byte // mapped with the first use
	flags      []*atomic.Uint32
	sleeping   []*atomic.Uint32
	places     []*atomic.Uint32 // 1 + the processor on which a rank runs
	moved      time.Time        // when this rank last stepped aside
	counter    *atomic.Uint32
	published  uint32
	calls      uint32
	tickets    uint32 // of the counter that earlier calls took
	arithmetic arithmetic
	in, out    []int64  // where the ranks' buffers lie in the file, 0: elsewhere
	srcs, dsts [][]byte // those buffers, of the running call
	lingering  bool     // peers may still read the windows of the last call
}

var _ collective.Direct = (*domain)(nil)

// Direct returns the shared memory of a group.
func (t *Transport) Direct(id uint64, ranks []int) collective.Direct {
	d := &domain{
		transport: t, ranks: ranks, quit: make(chan struct{}), rouse: make(chan struct{}, 1), entry: -1,
		arithmetic: newArithmetic(len(ranks)), in: make([]int64, len(ranks)), out: make([]int64, len(ranks)),
		srcs: make([][]byte, 0, len(ranks)), dsts: make([][]byte, 0, len(ranks)),
	}
	for i, r := range ranks {
		if r == t.rank {
			d.rank = i
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// All ranks open groups of one id in the same order.
	t.openings[id]++
	d.key = (id+t.openings[id]*0x9e3779b97f4a7c15)*0xff51afd7ed558ccd | 1
	t.domains[d] = struct{}{}
	return d
}

// table is an entry's key and how many ranks have left it.
func (d *domain) table(i int) (key *atomic.Uint64, left *atomic.Uint32) {
	at := d.transport.layout.table + i*line
	return atomic64At(d.transport.control, at), atomicAt(d.transport.control, at+line/2)
}

func (d *domain) find() int {
	for i := range domainsMax {
		if key, _ := d.table(i); key.Load() == d.key {
			return i
		}
	}
	return -1
}

// open finds the group's memory. Rank 0 of the group chooses it.
func (d *domain) open() error {
	if d.rank == 0 {
		d.entry = -1
		for i := 0; i < domainsMax && d.entry < 0; i++ {
			if key, _ := d.table(i); key.CompareAndSwap(0, d.key) {
				d.entry = i
			}
		}
		if d.entry < 0 {
			return fmt.Errorf("more than %d groups at a time over shared memory", domainsMax)
		}
		for _, r := range d.ranks[1:] {
			d.transport.ring(r)
		}
	}
	for d.entry < 0 {
		if d.entry = d.find(); d.entry >= 0 {
			break
		}
		if d.stopped.Load() {
			return d.reason()
		}
		select {
		case <-d.rouse:
		case <-d.quit:
		}
	}
	words, err := mapMemory(d.transport.memory, d.transport.layout.domainAt(d.entry), d.transport.layout.windows)
	if err != nil {
		return err
	}
	if err := populate(words); err != nil {
		_ = unix.Munmap(words)
		return err
	}
	d.words = words
	l := d.transport.layout
	d.counter = atomicAt(words, counterAt)
	for r := range d.ranks {
		d.flags = append(d.flags, atomicAt(words, l.flagAt(r)))
		d.sleeping = append(d.sleeping, atomicAt(words, l.sleepingAt(r)))
		d.places = append(d.places, atomicAt(words, l.placeAt(r)))
	}
	d.mu.Lock()
	d.own = d.sleeping[d.rank]
	d.mu.Unlock()
	return nil
}

// openWindows maps the staging memory of all ranks.
func (d *domain) openWindows() error {
	if d.windows != nil {
		return nil
	}
	l := d.transport.layout
	windows, err := mapMemory(d.transport.memory, l.domainAt(d.entry)+int64(l.windows), len(d.ranks)*l.stageStride())
	if err != nil {
		return err
	}
	if err := populate(windows); err != nil {
		_ = unix.Munmap(windows)
		return err
	}
	d.windows = windows
	return nil
}

// window is one of a rank's four.
func (d *domain) window(rank, i int) []byte {
	l := d.transport.layout
	at := rank*l.stageStride() + i*l.stage
	return d.windows[at : at+l.stage : at+l.stage]
}

// stop ends the running call and all later ones.
func (d *domain) stop() {
	if d.stopped.Swap(true) {
		return
	}
	close(d.quit)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own != nil {
		d.own.Store(0)
		wakeSleeper(d.own)
	}
}

// Abort implements collective.Direct.
func (d *domain) Abort() {
	if d.transport.enter(context.Background()) != nil {
		return
	}
	defer d.transport.exit()
	d.stop()
}

// reason is why the domain is stopped.
func (d *domain) reason() error {
	d.transport.mu.Lock()
	defer d.transport.mu.Unlock()
	switch {
	case d.transport.failure != nil:
		return d.transport.failure
	case d.transport.closed.Load():
		return d.transport.closedError()
	}
	return errAborted
}

// Close implements collective.Direct: the last rank to leave clears the memory
// for another group.
func (d *domain) Close() {
	t := d.transport
	if t.enter(context.Background()) != nil {
		return
	}
	defer t.exit()
	d.stop()
	d.busy.Lock()
	defer d.busy.Unlock()
	t.mu.Lock()
	_, open := t.domains[d]
	delete(t.domains, d)
	t.mu.Unlock()
	if !open {
		return
	}
	if d.entry < 0 {
		d.entry = d.find()
	}
	if d.entry >= 0 {
		if key, left := d.table(d.entry); int(left.Add(1)) == len(d.ranks) {
			if d.words != nil {
				clear(d.words[:t.layout.slots])
			}
			left.Store(0)
			key.Store(0)
		}
	}
	d.mu.Lock()
	d.own = nil
	d.mu.Unlock()
	d.unmap()
}

func (d *domain) unmap() {
	for _, b := range [][]byte{d.words, d.windows} {
		if b != nil {
			_ = unix.Munmap(b)
		}
	}
	d.words, d.windows = nil, nil
}
