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
	failure  error // *collective.LinkError of the first rank that was lost
	culprit  int   // that rank, or -1
	domains  map[*domain]struct{}
	openings map[uint64]uint64 // how often a group of that id was opened
	regions  atomic.Pointer[[]region]
}

var _ collective.Transport = (*Transport)(nil)

// spin is how a waiting goroutine behaves before it sleeps.
type spin struct {
	pauses  int  // looks, a pause apart
	yields  int  // looks, a yield apart
	crowded bool // there are more ranks than processors
}

func newSpin(ranks int) spin {
	return spin{pauses: 20, yields: 200, crowded: ranks > runtime.NumCPU()}
}

// newTransport starts a rank over memory, all ranks' eventfds and pidfds, which
// it takes over also when it fails.
func newTransport(rank int, memory *os.File, bells, processes []int) (*Transport, error) {
	size := len(bells)
	t := &Transport{
		rank: rank, size: size, layout: newLayout(size), hosts: [][]int{make([]int, size)}, links: make([]*link, size), spin: newSpin(size),
		memory: memory, bells: bells, processes: make([]*os.File, size), culprit: -1,
		domains: map[*domain]struct{}{}, openings: map[uint64]uint64{},
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

// Register returns the peers' memory at the place of b when b lies in memory
// that Comm.Alloc gave out to all ranks, and nil otherwise.
func (t *Transport) Register(_ context.Context, b device.Buf) ([]device.Buf, error) {
	return t.peersOf(b), nil
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
	return fmt.Errorf("shm transport of rank %d: %w", t.rank, collective.ErrClosed)
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

// watch fails the transport when peer's process dies.
func (t *Transport) watch(peer int) {
	raw, err := t.processes[peer].SyscallConn()
	if err != nil {
		return
	}
	looked := false
	err = raw.Read(func(uintptr) bool {
		before := looked
		looked = true
		return before // the first look asks the runtime to wait
	})
	if err != nil { // the transport closes
		return
	}
	t.poll(true) // it may have said goodbye
	t.fail(peer, errDied)
}

// fail ends all calls because peer was lost, unless it had said goodbye.
func (t *Transport) fail(peer int, err error) {
	l := t.links[peer]
	l.in.mu.Lock()
	left := l.in.left != nil
	l.in.mu.Unlock()
	if left {
		return
	}
	t.mu.Lock()
	if t.failure != nil {
		t.mu.Unlock()
		return
	}
	lost := l.lost(err)
	t.culprit, t.failure = peer, lost
	for d := range t.domains {
		d.stop()
	}
	t.mu.Unlock()
	for _, l := range t.links {
		l.abandon(lost)
	}
	if atomicAt(t.control, abortAt).CompareAndSwap(0, uint32(peer+1)) {
		for r := range t.size {
			if r != t.rank {
				t.ring(r)
			}
		}
	}
}

// Close says goodbye to the peers, waits for all goroutines and calls, and
// unmaps the memory, also what Comm.Alloc gave out.
func (t *Transport) Close() error {
	t.closing.Do(t.close)
	return nil
}

func (t *Transport) close() {
	t.closed.Store(true)
	t.mu.Lock()
	culprit, failed := t.culprit, t.failure != nil
	for d := range t.domains {
		d.stop()
	}
	t.mu.Unlock()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	for _, l := range t.links {
		l.abandon(t.closedError())
		if l.peer == t.rank {
			continue
		}
		if drained := l.sayGoodbye(culprit); drained != nil && !failed {
			select {
			case <-drained:
			case <-timer.C:
				failed = true // do not wait again
			}
		}
	}
	t.stopping.Store(true)
	t.ring(t.rank)
	for _, f := range t.processes {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	t.running.Wait()
	t.calls.Lock()
	defer t.calls.Unlock()
	t.release()
}

// sayGoodbye sends the last frame; drained is nil when all frames are in the
// ring.
func (l *link) sayGoodbye(culprit int) (drained <-chan struct{}) {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left != nil {
		return nil
	}
	l.emit(frame{kind: frameGoodbye, tag: collective.Tag(culprit + 1)}, nil)
	if o.waiting.empty() {
		return nil
	}
	o.drained = make(chan struct{})
	return o.drained
}

// release frees what the transport holds.
func (t *Transport) release() {
	if regions := t.regions.Load(); regions != nil {
		for _, r := range *regions {
			_ = unix.Munmap(r.mapped)
		}
		t.regions.Store(nil)
	}
	t.mu.Lock()
	for d := range t.domains {
		d.unmap()
	}
	t.mu.Unlock()
	if t.control != nil {
		_ = unix.Munmap(t.control)
		t.control = nil
	}
	for _, fd := range t.bells {
		_ = unix.Close(fd)
	}
	for _, f := range t.processes {
		_ = f.Close()
	}
	_ = t.bell.Close()
	_ = t.memory.Close()
}
