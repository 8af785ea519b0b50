package cpu

import (
	"sync"
	"sync/atomic"
)

// share is one task being worked on by several threads. Each of them has a run of
// parts and, when that is done, helps with the others' runs: as long as all are
// equally fast, a thread finds in its cache what it has written there in the tasks
// before.
type share struct {
	task task
	runs []run

	// joined counts the helpers inside and, in units of seat, how many more may
	// join. A helper may come with a pointer from an earlier offer: what counts is
	// that there is a seat now.
	joined  atomic.Int64
	waiting atomic.Bool // the caller sleeps until the last helper is out
	left    *sync.Cond
}

// run is what is left of one thread's parts, on a cache line of its own.
type run struct {
	next atomic.Int64 // the first part that nobody has taken
	end  int64
	_    [48]byte
}

const seat = 1 << 32

// cut makes sh the parts of t.
func (sh *share) cut(p *pool, t task, parts int) {
	if sh.left == nil {
		sh.left = sync.NewCond(&p.mu)
	}
	threads := min(p.threads, parts)
	sh.task, sh.runs = t, grow(sh.runs, threads)
	for i := range sh.runs {
		sh.runs[i].next.Store(int64(i * parts / threads))
		sh.runs[i].end = int64((i + 1) * parts / threads)
	}
}

// open gives out the seats, when sh is where helpers find it: a share that is
// nowhere offered is not shut either, and a late helper must find no seat in it.
func (sh *share) open() { sh.joined.Store(int64(len(sh.runs)-1) * seat) }

// enter joins sh if it has a seat left.
func (sh *share) enter() bool {
	for {
		v := sh.joined.Load()
		if v < seat {
			return false
		}
		if sh.joined.CompareAndSwap(v, v-seat+1) {
			return true
		}
	}
}

// shut lets nobody in any more.
func (sh *share) shut() {
	for v := sh.joined.Load(); v >= seat; v = sh.joined.Load() {
		sh.joined.CompareAndSwap(v, v%seat)
	}
}

// work does parts, of thread own's run first, until none are left.
func (sh *share) work(s *scratch, own int) {
	for i := range sh.runs {
		r := &sh.runs[(own+i)%len(sh.runs)]
		for {
			part := r.next.Add(1) - 1
			if part >= r.end {
				break
			}
			sh.task.do(s, int(part))
		}
	}
}
