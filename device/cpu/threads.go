package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// task is work cut into parts that write disjoint outputs.
type task interface {
	// do computes part index. s belongs to the calling thread.
	do(s *scratch, index int)
}

// pool is the threads of a device: the callers and threads-1 helpers. A caller
// offers its task and works on it itself; helpers that are free join. A caller
// never waits for a helper that has not joined. Who waits looks for a while
// before it sleeps: to wake a thread takes as long as many kernels. As long as
// everybody looks nobody takes a lock.
type pool struct {
	threads int
	patient time.Duration // how long to look before sleeping
	closed  atomic.Bool
	helpers sync.WaitGroup

	offers  [offered]atomic.Pointer[share]
	scratch *scratchRoom // of the helpers

	mu     sync.Mutex
	wanted *sync.Cond   // something is offered
	asleep atomic.Int32 // helpers that wait for wanted and have not been woken; changes under mu
}

const (
	// offered is how many callers have their tasks shared at one time.
	offered = 4
	// patience is longer than what a pass computes on one thread between two kernels
	// and far shorter than a step.
	patience = 200 * time.Microsecond
	// patienceAlone is longer than what lies between two steps: a processor on which
	// a helper sleeps goes to other programs, and to get it back takes milliseconds.
	patienceAlone = 20 * time.Millisecond
)

func newPool(threads int, alone bool, scratch *scratchRoom) *pool {
	p := &pool{threads: threads, patient: patience, scratch: scratch}
	if alone {
		p.patient = patienceAlone
	}
	if threads > runtime.NumCPU() {
		p.patient = 0 // who looks would keep another thread from computing
	}
	p.start()
	return p
}

func (p *pool) start() {
	p.wanted = sync.NewCond(&p.mu)
	for i := 1; i < p.threads; i++ {
		p.helpers.Go(func() { p.help(i) })
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed.Store(true)
	p.wanted.Broadcast()
	p.mu.Unlock()
	p.helpers.Wait()
}

// run does all parts of t and returns when they are done.
func (p *pool) run(w *workspace, t task, parts int) {
	if p.threads == 1 || parts <= 1 || p.closed.Load() {
		for i := range parts {
			t.do(&w.own, i)
		}
		return
	}
	sh := &w.share
	sh.cut(p, t, parts)
	place := p.offer(sh)
	sh.work(&w.own, 0)
	if place != nil {
		p.finish(sh, place)
	}
	sh.task = nil
}

// offer lets helpers join sh and returns where it is offered; nil where there was
// no place for it.
func (p *pool) offer(sh *share) *atomic.Pointer[share] {
	for i := range p.offers {
		if place := &p.offers[i]; place.CompareAndSwap(nil, sh) {
			sh.open()
			if p.asleep.Load() > 0 {
				p.wake(len(sh.runs) - 1)
			}
			return place
		}
	}
	return nil
}

func (p *pool) wake(helpers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range min(int(p.asleep.Load()), helpers) {
		p.asleep.Add(-1)
		p.wanted.Signal()
	}
}

// finish withdraws the offer and waits for the helpers that took it.
func (p *pool) finish(sh *share, place *atomic.Pointer[share]) {
	place.Store(nil)
	sh.shut()
	for look := p.look(); look.more(); {
		if sh.joined.Load() == 0 {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sh.waiting.Store(true)
	for sh.joined.Load() > 0 {
		sh.left.Wait()
	}
	sh.waiting.Store(false)
}

// help is the life of a helper, of which own is the number.
func (p *pool) help(own int) {
	var s scratch
	s.from(p.scratch)
	for {
		sh := p.join()
		if sh == nil {
			return
		}
		sh.work(&s, own)
		if sh.joined.Add(-1) == 0 && sh.waiting.Load() {
			p.mu.Lock()
			sh.left.Signal()
			p.mu.Unlock()
		}
	}
}

// join returns the next share to work on, nil when the pool is closed.
func (p *pool) join() *share {
	for look := p.look(); look.more() && !p.closed.Load(); {
		if sh := p.find(); sh != nil {
			return sh
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.asleep.Add(1) // before the last look: who offers looks at it after offering
		if sh := p.find(); sh != nil || p.closed.Load() {
			p.asleep.Add(-1)
			return sh
		}
		p.wanted.Wait()
	}
}

// find joins a share that is offered.
func (p *pool) find() *share {
	for i := range p.offers {
		if sh := p.offers[i].Load(); sh != nil && sh.enter() {
			return sh
		}
	}
	return nil
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
