package cpu

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// task is work cut into parts that write disjoint outputs.
type task interface {
	// do computes part index. s belongs to the calling thread.
	do(s *scratch, index int)
}

// share is one task being worked on by several threads.
type share struct {
	task    task
	parts   int
	next    atomic.Int64 // the first part that nobody has taken
	open    atomic.Int32 // helpers that may still join; changes under the pool's lock
	active  atomic.Int32 // helpers inside
	waiting atomic.Bool  // the caller sleeps until the last helper is out
	idle    *sync.Cond
}

// pool is the threads of a device: the callers and threads-1 helpers. A caller
// offers its task and works on it itself; helpers that are free join. A caller
// never waits for a helper that has not joined. Who waits looks for a while
// before it sleeps: to wake a thread takes as long as many kernels.
type pool struct {
	threads int
	patient time.Duration // how long to look before sleeping
	offers  atomic.Int32  // length of queue, for those who look
	closed  atomic.Bool
	helpers sync.WaitGroup

	mu      sync.Mutex
	offered *sync.Cond
	asleep  int // helpers that wait for offered and have not been woken
	queue   []*share
}

const (
	// patience is longer than what a pass computes on one thread between two kernels
	// and far shorter than a step.
	patience = 200 * time.Microsecond
	// patienceAlone is longer than what lies between two steps: a processor on which
	// a helper sleeps goes to other programs, and to get it back takes milliseconds.
	patienceAlone = 20 * time.Millisecond
)

func newPool(threads int, alone bool) *pool {
	p := &pool{threads: threads, patient: patience}
	if alone {
		p.patient = patienceAlone
	}
	if threads > runtime.NumCPU() {
		p.patient = 0 // who looks would keep another thread from computing
	}
	p.offered = sync.NewCond(&p.mu)
	for range threads - 1 {
		p.helpers.Go(p.help)
	}
	return p
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed.Store(true)
	p.offered.Broadcast()
	p.mu.Unlock()
	p.helpers.Wait()
}

// run does all parts of t and returns when they are done.
func (p *pool) run(w *workspace, t task, parts int) {
	if p.threads == 1 || parts <= 1 {
		for i := range parts {
			t.do(&w.own, i)
		}
		return
	}
	sh := &w.share
	sh.task, sh.parts = t, parts
	sh.next.Store(0)
	p.offer(sh, min(p.threads, parts)-1)
	sh.work(&w.own)
	p.finish(sh)
	sh.task = nil
}

func (sh *share) work(s *scratch) {
	for {
		i := int(sh.next.Add(1)) - 1
		if i >= sh.parts {
			return
		}
		sh.task.do(s, i)
	}
}

func (p *pool) offer(sh *share, helpers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return
	}
	if sh.idle == nil {
		sh.idle = sync.NewCond(&p.mu)
	}
	sh.open.Store(int32(helpers))
	p.queue = append(p.queue, sh)
	p.offers.Store(int32(len(p.queue)))
	for range min(p.asleep, helpers) {
		p.asleep--
		p.offered.Signal()
	}
}

// finish withdraws the offer and waits for the helpers that took it.
func (p *pool) finish(sh *share) {
	if sh.open.Load() > 0 {
		p.mu.Lock()
		sh.open.Store(0)
		p.remove(sh)
		p.mu.Unlock()
	}
	for look := p.look(); look.more(); {
		if sh.active.Load() == 0 {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sh.waiting.Store(true)
	for sh.active.Load() > 0 {
		sh.idle.Wait()
	}
	sh.waiting.Store(false)
}

// remove takes sh out of the queue, where it is there.
func (p *pool) remove(sh *share) {
	if i := slices.Index(p.queue, sh); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.offers.Store(int32(len(p.queue)))
	}
}

// help is the life of a helper.
func (p *pool) help() {
	var s scratch
	for {
		sh := p.join()
		if sh == nil {
			return
		}
		sh.work(&s)
		if sh.active.Add(-1) == 0 && sh.waiting.Load() {
			p.mu.Lock()
			sh.idle.Signal()
			p.mu.Unlock()
		}
	}
}

// join returns the next share to work on, nil when the pool is closed.
func (p *pool) join() *share {
	for look := p.look(); look.more() && p.offers.Load() == 0 && !p.closed.Load(); {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed.Load() {
		p.asleep++
		p.offered.Wait()
	}
	if p.closed.Load() {
		return nil
	}
	sh := p.queue[0]
	sh.active.Add(1)
	if sh.open.Add(-1) == 0 {
		p.remove(sh)
	}
	return sh
}

// look is a wait that does not sleep.
type look struct {
	left  time.Duration
	since time.Time
	count int
}

func (p *pool) look() look { return look{left: p.patient} }

// more pauses, but not at first, and reports whether to look again. After patience
// whoever else wants the processor gets it in between.
func (l *look) more() bool {
	const between = 16 // looks from one view of the clock to the next
	if l.left == 0 {
		return false
	}
	switch {
	case l.count == 0:
		l.since = time.Now()
	case l.count%between == 0:
		waited := time.Since(l.since)
		if waited > l.left {
			return false
		}
		if waited > patience {
			yield()
		}
	default:
		pause()
	}
	l.count++
	return true
}
