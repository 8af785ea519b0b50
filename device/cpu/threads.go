package cpu

import (
	"slices"
	"sync"
	"sync/atomic"
)

// task is work cut into parts that write disjoint outputs.
type task interface {
	// do computes part index. s belongs to the calling thread.
	do(s *scratch, index int)
}

// share is one task being worked on by several threads.
type share struct {
	task   task
	parts  int
	next   atomic.Int64 // the first part that nobody has taken
	wanted int          // helpers that may still join
	active int          // helpers inside
	idle   *sync.Cond   // active has become 0
}

// pool is the threads of a device: the callers and threads-1 helpers. A caller
// offers its task and works on it itself; helpers that are free join. A caller
// never waits for a helper that has not joined.
type pool struct {
	threads int
	mu      sync.Mutex
	offered *sync.Cond
	queue   []*share
	closed  bool
	helpers sync.WaitGroup
}

func newPool(threads int) *pool {
	p := &pool{threads: threads}
	p.offered = sync.NewCond(&p.mu)
	for range threads - 1 {
		p.helpers.Go(p.help)
	}
	return p
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
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
	if p.closed {
		return
	}
	if sh.idle == nil {
		sh.idle = sync.NewCond(&p.mu)
	}
	sh.wanted = helpers
	p.queue = append(p.queue, sh)
	for range helpers {
		p.offered.Signal()
	}
}

// finish withdraws the offer and waits for the helpers that took it.
func (p *pool) finish(sh *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, sh); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	for sh.active > 0 {
		sh.idle.Wait()
	}
}

// help is the life of a helper.
func (p *pool) help() {
	var s scratch
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.queue) == 0 && !p.closed {
			p.offered.Wait()
		}
		if p.closed {
			return
		}
		sh := p.queue[0]
		sh.active++
		if sh.wanted--; sh.wanted == 0 {
			p.queue = slices.Delete(p.queue, 0, 1)
		}
		p.mu.Unlock()
		sh.work(&s)
		p.mu.Lock()
		if sh.active--; sh.active == 0 {
			sh.idle.Signal()
		}
	}
}
