//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// lingerTime is how long Close waits for space in the rings for what was sent
// before.
const lingerTime = time.Second

var errDied = errors.New("its process has died")

// Transport is one rank's end of the shared memory. It implements
// collective.Transport.
type Transport struct {
	rank, size int
	names      []int // of the ranks, in errors
	lost       func(*collective.LinkError)
	layout     layout
	hosts      [][]int
	links      []*link // by rank; the own one has no rings
	spin       spin
	buffers    buffers
	receives   receives

	memory    *os.File
	control   []byte
	bell      *os.File   // the own eventfd
	bells     []int      // all ranks' eventfds
	processes []*os.File // pidfds by rank; nil: the own one

	pollers  atomic.Int32
	stopping atomic.Bool
	running  sync.WaitGroup
	calls    sync.RWMutex // held for reading by whoever touches the memory
	closed   atomic.Bool
	closing  sync.Once

	mu       sync.Mutex
	failure  *collective.LinkError // of the first rank that was lost
	culprit  int                   // that rank's name, or -1
	domains  map[*domain]struct{}
	openings map[uint64]uint64 // how often a group of that id was opened
	regions  atomic.Pointer[[]region]
}

var _ collective.Transport = (*Transport)(nil)

// spin is how a waiting goroutine behaves before it sleeps.
type spin struct {
	pauses     int  // looks, a pause apart
	looks      int  // one after the other before them, when the caller has nothing else to do
	foreground int  // then pauses instead
	yields     int  // looks, a yield apart
	crowded    bool // there are more ranks than processors
}

// newSpin chooses for a host of so many ranks. Where some share a processor, a
// caller looks a few times only: as a rule the one it waits for needs its
// processor.
func newSpin(ranks int) spin {
	s := spin{pauses: 20, looks: 32, foreground: 150, yields: 200}
	if ranks > runtime.NumCPU() {
		s.crowded, s.looks, s.foreground = true, 1, 3
	}
	return s
}

// newTransport starts the rank over memory, all ranks' eventfds and pidfds, which
// it takes over also when it fails.
func (c Config) newTransport(memory *os.File, bells, processes []int) (*Transport, error) {
	rank, size := c.Rank, len(bells)
	t := &Transport{
		names: c.Names, lost: c.Lost,
		rank: rank, size: size, layout: newLayout(size), hosts: [][]int{make([]int, size)}, links: make([]*link, size), spin: newSpin(size),
		memory: memory, bells: bells, processes: make([]*os.File, size), culprit: -1,
		domains: map[*domain]struct{}{}, openings: map[uint64]uint64{},
	}
	if t.names == nil {
		t.names = make([]int, size)
		for r := range size {
			t.names[r] = r
		}
	}
	for r := range size {
		t.hosts[0][r] = r
		t.processes[r] = os.NewFile(uintptr(processes[r]), "process")
	}
	// A file of its own for the runtime's poller.
	own, err := unix.FcntlInt(uintptr(bells[rank]), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		t.bell = os.NewFile(uintptr(own), "doorbell")
		t.control, err = mapMemory(memory, 0, t.layout.control)
	}
	if err == nil {
		err = t.prepare()
	}
	if err != nil {
		t.release()
		return nil, err
	}
	for r := range size {
		t.links[r] = newLink(t, r)
	}
	t.running.Go(t.attend)
	for r := range size {
		if r != rank {
			t.running.Go(func() { t.watch(r) })
		}
	}
	return t, nil
}

// prepare has the kernel make the pages that this rank will use at once.
func (t *Transport) prepare() error {
	if err := populate(pages(t.control, 0, t.layout.rings)); err != nil {
		return err
	}
	if t.size > 8 {
		return nil // pairs that use their rings touch them themselves
	}
	for r := range t.size {
		if r == t.rank {
			continue
		}
		for _, at := range []int{t.layout.ringAt(t.rank, r), t.layout.ringAt(r, t.rank)} {
			if err := populate(pages(t.control, at, at+t.layout.ringStride())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Transport) armed(rank int) *atomic.Uint32 { return atomicAt(t.control, armedAt+rank*line) }

// Rank is this process's place in the world.
func (t *Transport) Rank() int { return t.rank }

// Size is the number of ranks.
func (t *Transport) Size() int { return t.size }

// Hosts returns one host with all ranks; the caller must not change it.
func (t *Transport) Hosts() [][]int { return t.hosts }

// Processes is nil: every rank is a process of its own.
func (t *Transport) Processes() [][]int { return nil }

// Segment lets what arrives be reduced and passed on while it is in the cache.
func (t *Transport) Segment(int) int { return collective.SegmentSize }

// Register returns the peers' memory at the place of b when b lies in memory
// that Comm.Alloc gave out to all ranks, and nil otherwise.
func (t *Transport) Register(_ context.Context, b device.Buf) ([]device.Buf, error) {
	return t.peersOf(b), nil
}

// SendAsReady sends when all is ready.
func (t *Transport) SendAsReady(ctx context.Context, to int, tag collective.Tag, b []byte, ready func(at int) (int, error)) error {
	return collective.SendWhenReady(ctx, t, to, tag, b, ready)
}

// SendFilled sends what fill makes in stage.
func (t *Transport) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, t, to, tag, stage, fill)
}

// enter begins a use of the memory; exit ends it, unless there was an error.
func (t *Transport) enter(ctx context.Context) error {
	t.calls.RLock()
	err := ctx.Err()
	if t.closed.Load() {
		err = t.closedError()
	}
	if err != nil {
		t.calls.RUnlock()
	}
	return err
}

func (t *Transport) exit() { t.calls.RUnlock() }

func (t *Transport) closedError() error {
	return fmt.Errorf("shm transport of rank %d: %w", t.names[t.rank], collective.ErrClosed)
}

// await waits for the end of a call; cancelled says that ctx ended first.
func (t *Transport) await(ctx context.Context, ended *atomic.Bool, done <-chan struct{}) (cancelled bool) {
	if !ended.Load() {
		t.startPolling()
		for i := 0; i < t.spin.pauses+20 && !ended.Load(); i++ {
			if i < t.spin.pauses {
				pause(1)
			} else {
				relax(i - t.spin.pauses)
			}
			t.poll(false)
		}
		t.stopPolling()
	}
	select {
	case <-done:
		return false
	default:
	}
	select {
	case <-done:
		return false
	case <-ctx.Done():
		return true
	}
}
